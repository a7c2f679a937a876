#!/bin/bash
source=$1
target=$2
if [ ! -d $source ]; then
  echo "no such folder: $source"
  exit 1
fi
mkdir $target
cd $source
count=0
for file in $(find . -name '*.conf'); do
  mkdir -p $target/$(dirname $file)
  cp $file $target/$file && count=$count+1
done
echo copied $count files
