# Build the wheels in one stage, so that no compiler and no cache reaches the image that runs.
# The base image by digest (Python 3.11.16). `.ci/image` builds with the newest digest of the same tag; by hand:
#   docker buildx imagetools inspect python:3.11-slim-bookworm --format '{{.Manifest.Digest}}'
ARG PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b
FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
COPY .ci/requirements-build.txt .ci/requirements-image.txt .ci/
RUN pip install --no-cache-dir --require-hashes -r .ci/requirements-build.txt \
    && pip install --no-cache-dir --require-hashes --prefix=/install -r .ci/requirements-image.txt
COPY pyproject.toml README.md LICENSE app.yml ./
COPY bot bot
COPY evaluation evaluation
RUN pip install --no-cache-dir --no-deps --no-build-isolation --prefix=/install .

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.version="0.3.0"
# bubblewrap is the sandbox for generated tests, slirp4netns and ip the network of their set-up; git is
# for projects whose tests call it.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap git iproute2 libgomp1 libseccomp2 slirp4netns \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 bouncer \
    && install -d -m 0700 -o bouncer -g bouncer /data
COPY --from=build /install /usr/local
USER bouncer
WORKDIR /data
VOLUME /data
ENV PYTHONUNBUFFERED=1 \
    HOST=0.0.0.0 \
    PORT=8000 \
    DATABASE_URL=sqlite:////data/bouncer.db \
    BOUNCER_DATA_DIR=/data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/healthz', timeout=4)"]
STOPSIGNAL SIGTERM
CMD ["bouncer", "serve"]
