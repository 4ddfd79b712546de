# JobManager and TaskManager: Flink, PyFlink for its Python workers with akrunner for detached jobs' hosts, TensorFlow for the tasks.
FROM flink:2.3.0-java17
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/pyflink \
    && /opt/pyflink/bin/pip install --no-cache-dir "apache-flink>=2.3,<2.4" \
    && python3 -m venv /opt/tensorflow \
    && /opt/tensorflow/bin/pip install --no-cache-dir "tensorflow-cpu>=2.16" "tf-keras>=2.16"
COPY . /src
# Flink's Python in the cluster itself: loaded for each job anew it is never let go of
RUN /opt/pyflink/bin/pip install --no-cache-dir /src \
    && cp "$FLINK_HOME"/opt/flink-python-*.jar "$FLINK_HOME/lib/"
