-- For TensorFlow 1.15 only. Two workers and a parameter server; each worker reads its slice of the table, and writes its own rows. On PAI the directory is an archive:
-- tar -czf cluster.tar.gz -C cluster . and -Dscript='file:///.../cluster.tar.gz'.
--   cd examples/pai; akrunner pai -f cluster.sql --project pai_demo
create table if not exists iris_data (f1 DOUBLE, f2 DOUBLE, f3 DOUBLE, f4 DOUBLE, f5 STRING);
truncate table iris_data;
tunnel upload iris.csv iris_data;
create table if not exists iris_scores (species STRING, score DOUBLE, worker BIGINT) partitioned by (ds STRING);
alter table iris_scores add if not exists partition (ds='20260101');

PAI -name tensorflow1150 -project algo_public
    -Dscript='file://cluster' -DentryFile='./jobs/cluster.py'
    -Dtables='odps://pai_demo/tables/iris_data'
    -Doutputs='odps://pai_demo/tables/iris_scores/ds=20260101'
    -Dcluster='{"ps":{"count":1, "cpu":100}, "worker":{"count":2, "cpu":100, "memory":4000}}'
    -DuserDefinedParameters="--steps=60 --learning_rate=0.1";

select worker, species, count(*) as flowers, avg(score) as score from iris_scores where ds='20260101' group by worker, species order by 1, 2;
