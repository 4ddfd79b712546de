-- The iris table job of PAI-TensorFlow: rows come by TableRecordDataset, and go by TableWriter.
--   cd examples/pai; akrunner pai -f iris.sql --project pai_demo
set odps.sql.mapper.split.size=64;

create table if not exists iris_data (f1 DOUBLE, f2 DOUBLE, f3 DOUBLE, f4 DOUBLE, f5 STRING);
truncate table iris_data;
tunnel upload iris.csv iris_data;

create table if not exists iris_output(f1 DOUBLE,f2 DOUBLE,f3 DOUBLE,f4 DOUBLE,f5 STRING);

PAI -name tensorflow1150 -project algo_public
    -Dscript='file://iris.py'
    -Dtables='odps://pai_demo/tables/iris_data'
    -Doutputs='odps://pai_demo/tables/iris_output'
    -DuserDefinedParameters="--batch_size=32";

select f5, count(*) as flowers from iris_output group by f5 order by f5;
