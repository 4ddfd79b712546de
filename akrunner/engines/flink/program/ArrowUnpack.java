// Turns Arrow IPC stream bytes into RowData. Bytes that begin with a zero are words with which the job is to fail for good.
// Flink's own Janino compiles it on the TaskManager.
import java.io.*;
import org.apache.flink.core.memory.ByteArrayInputStreamWithPos;
import org.apache.flink.runtime.execution.SuppressRestartsException;
import org.apache.flink.streaming.api.graph.StreamConfig;
import org.apache.flink.streaming.api.operators.*;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.tasks.*;
import org.apache.flink.table.runtime.arrow.serializers.ArrowSerializer;
import org.apache.flink.table.types.logical.RowType;

public class AkrunnerArrowUnpack extends AbstractStreamOperator implements OneInputStreamOperator {
  private static final long serialVersionUID = 1L;
  private final RowType type;
  private transient ByteArrayInputStreamWithPos in;
  private transient ArrowSerializer serializer;
  private transient StreamRecord reused;

  public AkrunnerArrowUnpack(Object[] given, StreamTask task, StreamConfig config, Output out, ProcessingTimeService time) throws Exception {
    type = (RowType) given[0];
    setProcessingTimeService(time);
    setup(task, config, out);
  }

  public void open() throws Exception {
    super.open();
    in = new ByteArrayInputStreamWithPos();
    serializer = new ArrowSerializer(type, type);
    serializer.open(in, new ByteArrayOutputStream());
    reused = new StreamRecord(null);
  }

  public void processElement(StreamRecord record) throws Exception {
    byte[] bytes = (byte[]) record.getValue();
    if (bytes[0] == 0) throw new SuppressRestartsException(new RuntimeException(new String(bytes, 1, bytes.length - 1, "UTF-8")));
    in.setBuffer(bytes, 0, bytes.length);
    serializer.resetReader();
    int rows = serializer.load();
    for (int i = 0; i < rows; i++) output.collect(reused.replace(serializer.read(i)));
  }

  public void close() throws Exception {
    if (serializer != null) { serializer.close(); serializer = null; }
    super.close();
  }
}
