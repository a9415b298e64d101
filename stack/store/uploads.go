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

	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/backend/meta"
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

const (
	// inProgress ends the name that an upload's folder has while its parts are put together.
	inProgress = ".inprogress"
	// The attribute of the folder of a key's uploads that names the key.
	keyOfUploads = "objname"
	// The attribute of an object that was put together of parts. It says by which upload.
	madeOfParts = "mp-metadata"
)

// recoverUploads settles the uploads whose completion was cut off by the end of this process. Those whose object has
// its name are complete: what is left of their parts goes. The others get their names back. Otherwise the inner store
// would take it that it still works on them, and tell each further attempt that all is done.
func recoverUploads(disk disk) error {
	for _, bucket := range buckets() {
		found, err := filepath.Glob(filepath.Join(bucket, posix.MetaTmpMultipartDir, "*", "*"+inProgress))
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := recoverUpload(disk, bucket, path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// buckets lists the folders of all buckets. A pattern that matches them would read the names of all objects.
func buckets() (names []string) {
	eachEntry(".", func(entry fs.DirEntry) {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	})
	return names
}

func recoverUpload(disk disk, bucket, path string) error {
	uploadID, _, _ := strings.Cut(filepath.Base(path), ".")
	key, ok := keyOf(filepath.Dir(path))
	if !ok || uploadOf(bucket, key) != uploadID {
		return os.Rename(path, filepath.Join(filepath.Dir(path), uploadID))
	}
	// The parts are all there is of the object until its name is on the disk.
	if err := disk.syncName(bucket, filepath.Join(bucket, key)); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// keyOf tells whose uploads are in a folder.
func keyOf(uploads string) (key string, ok bool) {
	name, err := meta.XattrMeta{}.RetrieveAttribute(nil, uploads, "", keyOfUploads)
	return string(name), err == nil
}

// uploadOf tells by which upload an object was put together.
func uploadOf(bucket, key string) string {
	value, err := meta.XattrMeta{}.RetrieveAttribute(nil, bucket, key, madeOfParts)
	if err != nil {
		return ""
	}
	made, err := backend.UnmarshalMpUploadMetadata(value, false)
	if err != nil {
		return ""
	}
	return made.UploadID
}
