"""How many of the words in a side input each line has."""


def main(task_config):
    with open(task_config.user_params["ALINK:bc_1"]) as f:
        words = {line.strip().encode() for line in f}
    for batch in task_config.batches(64):
        counts = [sum(word in words for word in line.split()) for line in batch["text"]]
        task_config.output_writer.write_batch({"text": batch["text"], "known": counts})
