// Turns RowData into (kind, Arrow IPC stream bytes), some thousand rows an element. Flink's own Janino compiles it on the
// TaskManager.
// Kinds: 0 hello, with Flink's id of the job (it is sent before any row, and even if no row ever comes), 1 rows, 2 the end,
// 3 a tick, 4 a barrier follows.
import java.io.*;
import org.apache.flink.streaming.api.graph.StreamConfig;
import org.apache.flink.streaming.api.operators.*;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.tasks.*;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.arrow.serializers.ArrowSerializer;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.Row;

public class AkrunnerArrowPack extends AbstractStreamOperator implements OneInputStreamOperator {
  private static final long serialVersionUID = 1L;
  private final RowType type;
  private final int maxRows;
  private final long flushMillis;
  private final long tickMillis;
  private transient ByteArrayOutputStream out;
  private transient ArrowSerializer serializer;
  private transient int rows;
  private transient boolean greeted;
  private transient boolean flushing;
  private transient boolean done;

  public AkrunnerArrowPack(Object[] given, StreamTask task, StreamConfig config, Output out, ProcessingTimeService time) throws Exception {
    type = (RowType) given[0];
    maxRows = ((Integer) given[1]).intValue();
    flushMillis = ((Number) given[2]).longValue();
    tickMillis = ((Number) given[3]).longValue();
    setProcessingTimeService(time);
    setup(task, config, out);
  }

  public void open() throws Exception {
    super.open();
    out = new ByteArrayOutputStream(1 << 20);
    serializer = new ArrowSerializer(type, type);
    serializer.open(new ByteArrayInputStream(new byte[0]), out);
    final AkrunnerArrowPack self = this;
    ProcessingTimeService time = getProcessingTimeService();
    time.registerTimer(time.getCurrentProcessingTime(), new ProcessingTimeService.ProcessingTimeCallback() {
      public void onProcessingTime(long now) throws Exception { self.greet(); }
    });
    if (tickMillis > 0) tick();
  }

  void tick() {
    final AkrunnerArrowPack self = this;
    ProcessingTimeService time = getProcessingTimeService();
    time.registerTimer(time.getCurrentProcessingTime() + tickMillis, new ProcessingTimeService.ProcessingTimeCallback() {
      public void onProcessingTime(long now) throws Exception {
        if (!self.done) { self.send(3, new byte[0]); self.tick(); }
      }
    });
  }

  void greet() {
    if (greeted) return;
    greeted = true;
    send(0, getRuntimeContext().getJobInfo().getJobId().toString().getBytes());
  }

  void send(int kind, byte[] bytes) {
    output.collect(new StreamRecord(Row.of(new Object[] {Integer.valueOf(kind), bytes})));
  }

  public void processElement(StreamRecord record) throws Exception {
    serializer.write((RowData) record.getValue());
    if (++rows >= maxRows) {
      emit();
    } else if (flushMillis > 0 && !flushing) {
      flushing = true;
      final AkrunnerArrowPack self = this;
      ProcessingTimeService time = getProcessingTimeService();
      time.registerTimer(time.getCurrentProcessingTime() + flushMillis, new ProcessingTimeService.ProcessingTimeCallback() {
        public void onProcessingTime(long now) throws Exception { self.flushing = false; if (!self.done) self.emit(); }
      });
    }
  }

  void emit() throws Exception {
    greet();
    if (rows == 0) return;
    serializer.finishCurrentBatch();
    byte[] bytes = out.toByteArray();
    out.reset();
    serializer.resetWriter();
    rows = 0;
    send(1, bytes);
  }

  public void prepareSnapshotPreBarrier(long checkpoint) throws Exception {
    emit();
    send(4, new byte[0]);
    super.prepareSnapshotPreBarrier(checkpoint);
  }

  public void finish() throws Exception {
    emit();
    done = true;
    send(2, new byte[0]);
    super.finish();
  }

  public void close() throws Exception {
    if (serializer != null) { serializer.close(); serializer = null; }
    super.close();
  }
}
