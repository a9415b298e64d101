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

// disk brings files, their attributes and their names to where they outlive the loss of power.
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

// syncName syncs what is at a path, and the folders above it up to the top: each may be new.
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

// syncRemoval syncs the folder that a removed name was in, or the nearest above it that is left.
func (d disk) syncRemoval(top, path string) error {
	for path != top {
		path = filepath.Dir(path)
		if err := d.syncPath(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// told gives a failure the code that clients know it by. The gateway looks for that in the error itself, not in those
// that it wraps.
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

// misleading is what the inner store says whenever an object cannot be given its name, for want of room too.
var misleading = s3err.GetAPIError(s3err.ErrExistingObjectIsDirectory)

func isFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	var room syscall.Statfs_t
	return syscall.Statfs(".", &room) == nil && (room.Bavail == 0 || (room.Files > 0 && room.Ffree == 0))
}

// attributes keeps objects' attributes in extended attributes, as versitygw does.
//
// The etag of an object, or of a part, is what the inner store sets on the open file after the last byte and before the
// file gets its name. So that is where the bytes are synced: a name never leads to bytes that are not on the disk.
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
