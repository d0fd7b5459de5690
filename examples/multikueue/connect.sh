#!/bin/bash
# connect.sh HUB WORKER SECRET: gives the hub a worker's token, as a kubeconfig in a Secret that is named after the worker.
#
# HUB and WORKER are contexts of your kubeconfig, SECRET is where the token is on the worker (worker-token.yaml).
# The worker's address is the one in your kubeconfig; with SERVER=https://… it is that one. Nothing is written to disk.
set -euo pipefail
hub=$1 worker=$2 secret=${3#secret/}

of_worker() { kubectl --context="$worker" --namespace=kueue-system get secret "$secret" --output=jsonpath="{.data.$1}"; }

kubectl --context="$worker" --namespace=kueue-system wait "secret/$secret" --for=jsonpath='{.data.token}' --timeout=60s
server=${SERVER:-$(kubectl --context="$worker" config view --minify --output=jsonpath='{.clusters[0].cluster.server}')}
authority=$(of_worker 'ca\.crt')
token=$(of_worker token | base64 --decode)
kubectl --context="$hub" apply --server-side --force-conflicts --filename=- <<EOF
apiVersion: v1
kind: Secret
metadata:
  name: $worker
  namespace: kueue-system
stringData:
  kubeconfig: |
    apiVersion: v1
    kind: Config
    current-context: worker
    clusters: [{name: worker, cluster: {server: "$server", certificate-authority-data: $authority}}]
    users: [{name: hub, user: {token: $token}}]
    contexts: [{name: worker, context: {cluster: worker, user: hub}}]
EOF
