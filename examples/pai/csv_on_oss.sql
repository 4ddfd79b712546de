-- Lines of a CSV file in OSS, read by a queue and decode_csv; the model goes to checkpointDir, and a second run goes on from there.
--   cd examples/pai; akrunner pai -f csv_on_oss.sql --oss-root demo=bucket
PAI -name tensorflow1150 -project algo_public
    -Dscript= 'oss://demo.oss-cn-hangzhou-internal.aliyuncs.com/code/csv_on_oss.py'
    -Dbuckets='oss://demo.oss-cn-hangzhou-internal.aliyuncs.com/?role_arn=acs:ram::1:role/x&host=oss-cn-hangzhou-internal.aliyuncs.com'
    -DcheckpointDir='oss://demo.oss-cn-hangzhou-internal.aliyuncs.com/model/'
    -DhyperParameters='oss://demo/code/hyper_parameters.txt'
    -DgpuRequired=100;
