"""An HTTP extender in a process of its own, as good or as bad as its paths say: /good/filter, /slow/filter, ..."""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Extender(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        _, mood, verb = self.path.split("/")
        names = given.get("NodeNames") or [n["metadata"]["name"] for n in (given.get("Nodes") or {}).get("items", [])]
        if mood == "slow":
            time.sleep(30)
        if mood == "closed":
            self.connection.close()
            return
        if mood == "refusing":
            self._answer(b"no", 500)
        elif mood == "babbling":
            self._answer(b"<html>not json</html>")
        elif mood == "huge":
            self._answer(b'{"NodeNames": ["' + b"x" * (65 << 20) + b'"]}')
        elif mood == "inventing":
            self._answer(json.dumps({"NodeNames": ["no-such-node"]}).encode())
        elif mood == "complaining":
            self._answer(json.dumps({"Error": "not today"}).encode())
        elif mood == "wrong":
            self._answer(json.dumps({"NodeNames": 7, "FailedNodes": []}).encode())
        elif verb == "filter":
            kept = [n for n in names if n != "n0"]
            if given.get("Nodes"):
                items = [n for n in given["Nodes"]["items"] if n["metadata"]["name"] != "n0"]
                self._answer(json.dumps({"nodes": {"items": items}, "failedNodes": {"n0": "not that one"}}).encode())
            else:
                self._answer(json.dumps({"NodeNames": kept, "FailedAndUnresolvableNodes": {"n0": "never"}}).encode())
        elif verb == "prioritize":
            self._answer(json.dumps([{"Host": n, "Score": 10 if n == "n2" else 0} for n in names]).encode())
        elif verb == "bind":
            print(f"bound {given['PodNamespace']}/{given['PodName']} to {given['Node']}", flush=True)
            self._answer(json.dumps({"Error": ""}).encode())
        elif verb == "preempt":
            victims = given.get("NodeNameToMetaVictims") or {
                node: {"Pods": [{"UID": p["metadata"]["uid"]} for p in v["Pods"]], "NumPDBViolations": 0}
                for node, v in given["NodeNameToVictims"].items()
            }
            self._answer(json.dumps({"NodeNameToMetaVictims": {n: v for n, v in victims.items() if n == "n2"}}).encode())

    def _answer(self, body: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Extender)
    print(server.server_port, flush=True)
    sys.stdout.flush()
    server.serve_forever()
