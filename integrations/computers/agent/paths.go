package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// deletePath deletes a file, a link (not its target), or a folder.
func deletePath(path string, isRecursive bool) error {
	if err := refuseKept(path); err != nil {
		return err
	}
	var stat syscall.Stat_t
	err := syscall.Lstat(path, &stat)
	switch {
	case err != nil:
	case typeOf(&stat) != "directory":
		err = syscall.Unlink(path)
	case !isRecursive:
		err = syscall.Rmdir(path)
	default:
		err = run("rm", "-rf", "--one-file-system", "--", path)
		if err == nil && exists(path) {
			err = refusal("FILE_ACCESS_DENIED")
		}
	}
	if err != nil {
		return err
	}
	return syncFolder(folderOf(path))
}

// movePath moves a file, a link (not its target), or a folder. A move that fails leaves the source whole.
func movePath(path, to string, mayReplace bool) error {
	if err := errors.Join(refuseKept(path), refuseKept(to)); err != nil {
		return err
	}
	names.Lock()
	err := renameUnlessTaken(path, to, mayReplace)
	names.Unlock()
	if errors.Is(err, syscall.EXDEV) {
		// Temporary files are on another file system.
		return moveAcross(path, to, mayReplace)
	}
	if err != nil {
		return err
	}
	return errors.Join(syncFolder(folderOf(path)), syncFolder(folderOf(to)))
}

// moveAcross moves to another file system. The target gets its name when it is completely on the disk. Only then is the
// source renamed away, in one step. A crash in between leaves both.
func moveAcross(path, to string, mayReplace bool) error {
	// The real path has no last part such as `.`, which cannot be renamed.
	source := path
	if info, err := os.Lstat(path); err != nil {
		return err
	} else if info.Mode()&os.ModeSymlink == 0 {
		if source, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	const writeAndSearch = 3
	// Do not copy a source that cannot be removed.
	if err := syscall.Access(folderOf(source), writeAndSearch); err != nil {
		return err
	}
	copied, removed := temporaryBeside(to), temporaryBeside(source)
	err := run("cp", "-aT", "--", source, copied)
	if err == nil {
		err = run("sync", "-f", "--", folderOf(to))
	}
	if err == nil {
		err = exchange(source, removed, copied, to, mayReplace)
	}
	if err != nil {
		removeTree(copied)
		return err
	}
	if err := removeTree(removed); err != nil {
		return err
	}
	return syncFolder(folderOf(source))
}

func exchange(source, removed, copied, to string, mayReplace bool) error {
	names.Lock()
	defer names.Unlock()
	isNew := !exists(to)
	if err := renameUnlessTaken(copied, to, mayReplace); err != nil {
		return err
	}
	if err := syncFolder(folderOf(to)); err != nil {
		return err
	}
	err := syscall.Rename(source, removed)
	if err != nil && isNew {
		// Undo only a new name: a file that was replaced is gone, so the copy stays in its place.
		return errors.Join(err, syscall.Rename(to, copied))
	}
	return err
}

func renameUnlessTaken(path, to string, mayReplace bool) error {
	if !mayReplace && exists(to) {
		return refusal("FILE_EXISTS")
	}
	return syscall.Rename(path, to)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// makeFolder makes a folder, whose name is then on the disk.
func makeFolder(path string, withParents bool) error {
	if withParents {
		return makeFolders(path)
	}
	if err := syscall.Mkdir(path, 0o777); err != nil {
		return err
	}
	giveTo(ownerOf(path, nil), func(user, group int) error { return os.Lchown(path, user, group) })
	return syncFolder(folderOf(path))
}

// makeFolders makes a folder, unless it exists, and its missing parents.
func makeFolders(path string) error {
	err := makeFolder(path, false)
	if errors.Is(err, syscall.ENOENT) && path != "/" {
		if err = makeFolders(folderOf(path)); err == nil {
			// Once only: some file systems, such as /proc, say ENOENT where the parent exists.
			err = makeFolder(path, false)
		}
	}
	if info, failure := os.Stat(path); errors.Is(err, syscall.EEXIST) && failure == nil && info.IsDir() {
		return nil
	}
	return err
}

// syncFolder brings the names in a folder to the disk. It does nothing if we may not read the folder, if it has been
// removed meanwhile, or if its file system does not sync folders.
func syncFolder(path string) error {
	folder, err := os.OpenFile(path, syscall.O_DIRECTORY, 0)
	if err == nil {
		err = fsync(folder)
		folder.Close()
	}
	for _, harmless := range []error{syscall.EACCES, syscall.ENOENT, syscall.EINVAL} {
		if errors.Is(err, harmless) {
			return nil
		}
	}
	return err
}

// folderOf does not simplify the path as path.Dir does: `..` after a link is not what it seems to be.
func folderOf(path string) string {
	path = strings.TrimRight(path, "/")
	return path[:max(1, strings.LastIndexByte(path, '/'))]
}

var fullDisk = regexp.MustCompile("No space left on device|Disk quota exceeded")

// The tests replace these two, and look at the disk at each sync.
var (
	fsync = (*os.File).Sync
	run   = runProgram
)

// runProgram runs a program of the system. Other slow work goes on meanwhile.
func runProgram(command ...string) error {
	<-slowCalls
	defer func() { slowCalls <- struct{}{} }()
	said, theirs, err := pipe(reads)
	if err != nil {
		return err
	}
	defer said.Close()
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err == nil {
		files := []uintptr{null.Fd(), null.Fd(), theirs}
		var ended <-chan syscall.WaitStatus
		_, ended, err = children.start(command, &syscall.ProcAttr{Files: files})
		null.Close()
		syscall.Close(int(theirs))
		if err == nil {
			complaint, _ := io.ReadAll(said)
			if status := <-ended; status == 0 {
				return nil
			}
			if fullDisk.Match(complaint) {
				return refusal("DISK_FULL")
			}
		}
	}
	return refusal("FILE_ACCESS_DENIED")
}

// `rm` cannot empty a folder that its owner may not write.
const removeWritable = `find "$0" -type d ! -perm -u=rwx -exec chmod u+rwx {} ";"; exec rm -rf -- "$0"`

func removeTree(path string) error {
	if run("rm", "-rf", "--", path) == nil {
		return nil
	}
	return run("sh", "-c", removeWritable, path)
}
