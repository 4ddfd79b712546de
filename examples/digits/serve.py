"""Answer requests with a model: `python serve.py MODEL [PORT]`, then POST {"image": [64 numbers]} to http://127.0.0.1:PORT.

The model is warm in a worker process of its own, whatever TensorFlow that has; threads of this one share it.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import akrunner


def main(model: str, port: int) -> None:
    with akrunner.LocalPredictor(model) as predictor:

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                try:
                    row = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                    status, answer = 200, predictor.predict(row)
                except (ValueError, akrunner.AkrunnerError) as e:
                    status, answer = 400, {"error": str(e).splitlines()[0]}
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        print(f"takes {', '.join(predictor.input_schema.names)} on http://127.0.0.1:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python serve.py MODEL [PORT]   (a model: python train_predict.py MODEL makes one)")
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
