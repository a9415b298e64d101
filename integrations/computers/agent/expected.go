package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"syscall"
)

// Files that must have these contents before a process starts: their SHA-256 by their paths below the folder.
type expectedFiles struct {
	Folder string
	Sha256 map[string]string
}

// More than an app may have. It stops the reading of a file that grows without end.
const maxExpectedBytes = 1 << 30

func requireFiles(expected *expectedFiles) error {
	if expected == nil {
		return nil
	}
	left := int64(maxExpectedBytes)
	for path, sum := range expected.Sha256 {
		if actual, err := hashOf(expected.Folder+"/"+path, &left); err != nil || actual != sum {
			return refusal("FILES_CHANGED")
		}
	}
	return nil
}

func hashOf(path string, left *int64) (string, error) {
	file, err := openPlain(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	count, err := io.Copy(hash, io.LimitReader(file, *left))
	*left -= count
	if *left == 0 {
		err = syscall.EFBIG
	}
	return hex.EncodeToString(hash.Sum(nil)), err
}

// openPlain opens a regular file. With O_NONBLOCK, opening a FIFO does not wait for a writer.
func openPlain(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, refusal("NOT_A_FILE")
	}
	return file, nil
}
