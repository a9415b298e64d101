package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/versity/versitygw/backend/posix"
)

// Where the inner store keeps the parts of an upload.
func uploadFolder(bucket, key, uploadID string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(bucket, posix.MetaTmpMultipartDir, fmt.Sprintf("%x", sum), uploadID)
}

func partFile(folder string, number int32) string {
	return filepath.Join(folder, strconv.Itoa(int(number)))
}

// inProgress ends the name that an upload's folder has while its parts are put together.
const inProgress = ".inprogress"

// recoverUploads gives uploads their names back whose completion was cut off by the end of this process. Otherwise the
// inner store would take it that it still works on them, and tell each further attempt that all is done.
func recoverUploads(folder string) error {
	found, err := filepath.Glob(filepath.Join(folder, "*", posix.MetaTmpMultipartDir, "*", "*"+inProgress))
	if err != nil {
		return err
	}
	for _, path := range found {
		uploadID, _, _ := strings.Cut(filepath.Base(path), ".")
		err := os.Rename(path, filepath.Join(filepath.Dir(path), uploadID))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
