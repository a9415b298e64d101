package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/s3err"
)

// disk syncs files, their attributes and their names, so that they survive a loss of power.
type disk struct {
	relaxed bool
}

func (d disk) syncFile(f *os.File) error {
	if d.relaxed {
		return nil
	}
	return f.Sync()
}

// syncPath syncs a file, or the names in a folder.
func (d disk) syncPath(path string) error {
	if d.relaxed {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// syncName syncs a path and the folders above it up to the top, since each of them may be new.
func (d disk) syncName(top, path string) error {
	for {
		if err := d.syncPath(path); err != nil {
			return err
		}
		if path == top {
			return nil
		}
		path = filepath.Dir(path)
	}
}

// syncRemoval syncs the folder of a removed name, or its nearest parent that still exists.
func (d disk) syncRemoval(top, path string) error {
	for path != top {
		path = filepath.Dir(path)
		if err := d.syncPath(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// told turns a failure into the error whose code clients know. The gateway looks only at the error itself, not at
// errors that it wraps.
func told(err error) error {
	if err == nil {
		return nil
	}
	var known s3err.S3Error
	if errors.As(err, &known) && known.BaseError().Code != misleading.Code {
		return known
	}
	if isFull(err) {
		return s3err.GetAPIError(s3err.ErrNoSpaceLeftOnDevice)
	}
	if known != nil {
		return known
	}
	return err
}

// misleading is the inner store's error whenever an object cannot get its name, even if the disk is full.
var misleading = s3err.GetAPIError(s3err.ErrExistingObjectIsDirectory)

func isFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	var room syscall.Statfs_t
	return syscall.Statfs(".", &room) == nil && (room.Bavail == 0 || (room.Files > 0 && room.Ffree == 0))
}

// attributes keeps attributes of objects in extended attributes, as versitygw does.
//
// The inner store sets the etag of an object or a part on the open file, after the last byte and before the file gets
// its name. So the bytes are synced there: a name never leads to bytes that are not on the disk.
type attributes struct {
	meta.XattrMeta
	disk disk
}

const etag = "etag"

func (a attributes) StoreAttribute(f *os.File, bucket, object, attribute string, value []byte) error {
	if err := a.XattrMeta.StoreAttribute(f, bucket, object, attribute, value); err != nil {
		return err
	}
	if f == nil {
		return a.disk.syncPath(filepath.Join(bucket, object))
	}
	if attribute != etag {
		return nil
	}
	return told(a.disk.syncFile(f))
}

func (a attributes) DeleteAttribute(bucket, object, attribute string) error {
	if err := a.XattrMeta.DeleteAttribute(bucket, object, attribute); err != nil {
		return err
	}
	return a.disk.syncPath(filepath.Join(bucket, object))
}
