#!/bin/bash
set -eu
cd /app/book
sed -i 's/\$(CHAPTER)/$(CHAPTERS)/' Makefile
make
make check
make package
