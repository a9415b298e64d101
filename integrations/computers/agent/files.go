package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

// Paths are bytes in base64.
type fileRequest struct {
	Path, To                    string
	Start, End, Suffix          *int64
	Mode                        *uint32
	IfMatch, After              *string
	Limit                       int
	IfNew                       bool
	Parents, Recursive, Replace bool
}

var fileCodes = map[syscall.Errno]string{
	syscall.ENOENT:       "FILE_NOT_FOUND",
	syscall.ENOTDIR:      "FILE_NOT_FOUND",
	syscall.EACCES:       "FILE_ACCESS_DENIED",
	syscall.EPERM:        "FILE_ACCESS_DENIED",
	syscall.EROFS:        "FILE_ACCESS_DENIED",
	syscall.EBUSY:        "FILE_ACCESS_DENIED",
	syscall.ELOOP:        "PATH_INVALID",
	syscall.ENAMETOOLONG: "PATH_INVALID",
	syscall.EINVAL:       "PATH_INVALID",
	syscall.EEXIST:       "FILE_EXISTS",
	syscall.ENOTEMPTY:    "FOLDER_NOT_EMPTY",
	syscall.EISDIR:       "NOT_A_FILE",
	syscall.ENXIO:        "NOT_A_FILE",
	syscall.ENOSPC:       "DISK_FULL",
	syscall.EDQUOT:       "DISK_FULL",
	syscall.EFBIG:        "DISK_FULL",
}

// takeFileRequest serves files inside the sandbox, so a link reaches only what the tenant's own programs reach.
func takeFileRequest(asked *fileRequest, kind string, s *stream) (any, error) {
	path, err := pathOf(asked.Path)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "file.read":
		return nil, readFile(s, path, asked)
	case "file.write":
		return writeFile(s, path, asked)
	}
	return slowly(func() (any, error) {
		switch kind {
		case "file.stat":
			return entryOf(path, nameOf(path))
		case "file.list":
			return listFolder(path, asked)
		case "file.delete":
			return struct{}{}, deletePath(path, asked.Recursive)
		case "file.move":
			to, err := pathOf(asked.To)
			if err != nil {
				return nil, err
			}
			return struct{}{}, movePath(path, to, asked.Replace)
		case "file.folder":
			return struct{}{}, makeFolder(path, asked.Parents)
		}
		return nil, refusal("REQUEST_UNKNOWN")
	})
}

var home, _ = os.Getwd()

// A path is absolute, or relative to the home, which is our working folder.
func pathOf(base64Bytes string) (string, error) {
	path, err := base64.StdEncoding.DecodeString(base64Bytes)
	if err != nil || len(path) == 0 || len(path) > 4_095 || bytes.IndexByte(path, 0) >= 0 {
		return "", refusal("PATH_INVALID")
	}
	if path[0] == '/' {
		return string(path), nil
	}
	return home + "/" + string(path), nil
}

func nameOf(path string) string {
	path = strings.TrimRight(path, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}

type entry struct {
	Name       string `json:"name"`
	NameBytes  []byte `json:"nameBytes,omitempty"`
	Type       string `json:"type"`
	Size       int64  `json:"size"`
	Mode       uint32 `json:"mode"`
	ModifiedAt string `json:"modifiedAt"`
	Etag       string `json:"etag"`
	Target     string `json:"target,omitempty"`
}

// entryOf describes a path. A link at its end is not followed.
func entryOf(path, name string) (*entry, error) {
	var stat syscall.Stat_t
	if err := syscall.Lstat(path, &stat); err != nil {
		return nil, err
	}
	found := &entry{
		Name: name, Type: typeOf(&stat), Size: sizeOf(&stat), Mode: stat.Mode & 0o7777, ModifiedAt: timeOf(&stat),
		Etag: etagOf(&stat),
	}
	if !utf8.ValidString(name) {
		found.NameBytes = []byte(name)
	}
	var err error
	if found.Type == "symlink" {
		found.Target, err = os.Readlink(path)
	}
	return found, err
}

// etagOf changes with every change of the file: each write makes a new inode, and the kernel's times count nanoseconds.
func etagOf(stat *syscall.Stat_t) string {
	in36 := func(number int64) string { return strconv.FormatInt(number, 36) }
	parts := []string{
		strconv.FormatUint(stat.Ino, 36), in36(stat.Size), in36(stat.Mtim.Nano()), in36(stat.Ctim.Nano()),
	}
	return `"` + strings.Join(parts, "-") + `"`
}

// sizeOf caps the size at the largest number that JavaScript knows exactly, because a sparse file may claim more.
func sizeOf(stat *syscall.Stat_t) int64 { return min(stat.Size, 1<<53-1) }

// timeOf keeps the time within the years 1970 to 9999, because a file may claim any time.
func timeOf(stat *syscall.Stat_t) string {
	at := time.Unix(max(0, min(stat.Mtim.Sec, 253_402_300_799)), stat.Mtim.Nsec)
	return at.UTC().Format("2006-01-02T15:04:05.000Z")
}

func typeOf(stat *syscall.Stat_t) string {
	switch stat.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
		return "file"
	case syscall.S_IFDIR:
		return "directory"
	case syscall.S_IFLNK:
		return "symlink"
	}
	return "other"
}

const maxPage = 1_000

// listFolder returns a page of a folder, sorted by name. What it holds in memory does not grow with the folder.
func listFolder(path string, asked *fileRequest) (any, error) {
	after := ""
	if asked.After != nil {
		start, _ := base64.RawURLEncoding.DecodeString(*asked.After) // what is not valid is left out
		after = string(start)
	}
	names, hasMore, err := firstNames(path, after, max(1, min(asked.Limit, maxPage)))
	if err != nil {
		return nil, err
	}
	entries := []*entry{}
	for _, name := range names {
		// Entries that were deleted in the meantime are left out.
		if found, err := entryOf(path+"/"+name, name); err == nil {
			entries = append(entries, found)
		}
	}
	var next any
	if hasMore && len(names) > 0 {
		next = base64.RawURLEncoding.EncodeToString([]byte(names[len(names)-1]))
	}
	return map[string]any{"entries": entries, "nextCursor": next}, nil
}

func firstNames(path, after string, size int) ([]string, bool, error) {
	folder, err := os.OpenFile(path, syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, false, err
	}
	defer folder.Close()
	var first []string
	hasMore := false
	for {
		names, err := folder.Readdirnames(maxPage)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, false, err
		}
		for _, name := range names {
			if name > after {
				first = append(first, name)
			}
		}
		slices.Sort(first)
		if len(first) > size {
			first, hasMore = first[:size], true
		}
		if len(names) == 0 {
			return first, hasMore, nil
		}
	}
}
