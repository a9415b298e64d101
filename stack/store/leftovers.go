package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/versity/versitygw/backend/posix"
)

// removeTemporary removes temporary files of a killed process, and folders without uploads. It runs before the first
// request, when nothing is in use. Uploads stay, since clients may continue them.
func removeTemporary() {
	for _, bucket := range buckets() {
		removeFiles(filepath.Join(bucket, posix.MetaTmpDir))
		eachEntry(filepath.Join(bucket, posix.MetaTmpMultipartDir), func(entry fs.DirEntry) {
			folder := filepath.Join(bucket, posix.MetaTmpMultipartDir, entry.Name())
			removeFiles(folder)
			if _, ok := keyOf(folder); !ok {
				removeEmpty(folder)
			}
			// Fails if uploads are left in it.
			_ = os.Remove(folder)
		})
	}
}

// removeFiles removes the files in a folder, but not its folders.
func removeFiles(folder string) {
	eachEntry(folder, func(entry fs.DirEntry) {
		if !entry.IsDir() {
			remove(filepath.Join(folder, entry.Name()))
		}
	})
}

// removeEmpty removes the empty folders in a folder. A new upload makes its folder first, and is answered only after
// its key is noted. Without a key no client knows the upload, and it has no parts.
func removeEmpty(folder string) {
	eachEntry(folder, func(entry fs.DirEntry) { _ = os.Remove(filepath.Join(folder, entry.Name())) })
}

// besideObject matches the name of a file that is about to replace an object. The inner store links it before the
// rename. The name ends with the time in nanoseconds.
var besideObject = regexp.MustCompile(`^\..+\.sgwtmp\.(\d{19})$`)

// removeBesideObjects removes such files from before `start`, which would be listed as objects. It reads the names of
// all objects, so it runs beside requests. Keys are flat, so folders below a bucket have no such names.
func removeBesideObjects(start time.Time) {
	for _, bucket := range buckets() {
		eachEntry(bucket, func(entry fs.DirEntry) {
			found := besideObject.FindStringSubmatch(entry.Name())
			if found == nil || entry.IsDir() {
				return
			}
			if at, err := strconv.ParseInt(found[1], 10, 64); err == nil && at < start.UnixNano() {
				remove(filepath.Join(bucket, entry.Name()))
			}
		})
	}
}

const entriesAtOnce = 1_000

// eachEntry passes each entry of a folder, in constant memory and without a stat of each file.
func eachEntry(folder string, look func(entry fs.DirEntry)) {
	f, err := os.Open(folder)
	if err != nil {
		return
	}
	defer f.Close()
	for {
		entries, err := f.ReadDir(entriesAtOnce)
		for _, entry := range entries {
			look(entry)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, err)
			}
			return
		}
	}
}

// remove removes a file. If that fails, the next start tries again.
func remove(path string) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, err)
	}
}
