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

// uploadFolder is where the inner store keeps the parts of an upload.
func uploadFolder(bucket, key, uploadID string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(bucket, posix.MetaTmpMultipartDir, fmt.Sprintf("%x", sum), uploadID)
}

func partFile(folder string, number int32) string {
	return filepath.Join(folder, strconv.Itoa(int(number)))
}

const (
	// Suffix of an upload's folder while its parts are put together.
	inProgress = ".inprogress"
	// Attribute with the key, on the folder of a key's uploads.
	keyOfUploads = "objname"
	// Attribute with the upload, on an object that was made from parts.
	madeOfParts = "mp-metadata"
)

// recoverUploads settles uploads whose completion was interrupted by the end of the process. If the object has its
// name, the upload is complete, and the leftover parts are removed. Otherwise the folder gets its usual name back.
// Without that the inner store would believe that the completion still runs, and tell each retry that all is done.
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

// buckets lists the folders of all buckets. A glob pattern would read the names of all objects.
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
	// Sync the object's name before removing the parts. Until then they are the only copy.
	if err := disk.syncName(bucket, filepath.Join(bucket, key)); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// keyOf returns the key of the uploads in a folder.
func keyOf(uploads string) (key string, ok bool) {
	name, err := meta.XattrMeta{}.RetrieveAttribute(nil, uploads, "", keyOfUploads)
	return string(name), err == nil
}

// uploadOf returns the upload that made an object from parts.
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
