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

// removeTemporary removes the temporary files of a process that was killed, and folders of uploads that hold none. It
// runs before the first request, when nothing can be in use. Uploads stay: their clients know of them.
func removeTemporary() {
	for _, bucket := range buckets() {
		removeFiles(filepath.Join(bucket, posix.MetaTmpDir))
		eachEntry(filepath.Join(bucket, posix.MetaTmpMultipartDir), func(entry fs.DirEntry) {
			folder := filepath.Join(bucket, posix.MetaTmpMultipartDir, entry.Name())
			removeFiles(folder)
			if _, ok := keyOf(folder); !ok {
				removeEmpty(folder)
			}
			// It fails where uploads are left.
			_ = os.Remove(folder)
		})
	}
}

// removeFiles removes the files in a folder, and none of its folders.
func removeFiles(folder string) {
	eachEntry(folder, func(entry fs.DirEntry) {
		if !entry.IsDir() {
			remove(filepath.Join(folder, entry.Name()))
		}
	})
}

// removeEmpty removes the empty folders in a folder. An upload is begun by making its folder, and is answered only when
// the key is noted: without a key, nobody knows the upload, and it has no parts.
func removeEmpty(folder string) {
	eachEntry(folder, func(entry fs.DirEntry) { _ = os.Remove(filepath.Join(folder, entry.Name())) })
}

// besideObject is the name under which the inner store links a file that replaces an object, before it renames it. At
// its end is the time in nanoseconds.
var besideObject = regexp.MustCompile(`^\..+\.sgwtmp\.(\d{19})$`)

// removeBesideObjects removes the names of besideObject from before `start`. They would be listed as objects. It reads
// the names of all objects, so it runs beside requests. Keys are flat, so no folder below a bucket has such names.
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

// eachEntry passes what is in a folder, in constant memory and without a look at each file.
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

// remove removes a file. What cannot be removed now is there at the next start.
func remove(path string) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, err)
	}
}
