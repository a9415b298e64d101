package main

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A change that the agent has answered outlives a power cut. Each test lists the syncs of a change. A sync is shown as
// what is synced, and what is in the folder at that moment: `file=old` is a file with its content, and TMP is a new name.

type change struct {
	kind    string
	request fileRequest
	text    string
	// The folders and files before the change.
	before []string
	syncs  []string
}

var changes = map[string]change{
	"a new file": {
		kind: "file.write", request: fileRequest{Path: "file"}, text: "new",
		syncs: []string{"TMP: TMP=new", ".: file=new"},
	},
	"a file that is replaced": {
		kind: "file.write", request: fileRequest{Path: "file"}, text: "new", before: []string{"file=old"},
		syncs: []string{"TMP: TMP=new file=old", ".: file=new"},
	},
	"a file in new folders": {
		kind: "file.write", request: fileRequest{Path: "a/b/file", Parents: true}, text: "new",
		syncs: []string{
			".: a/", "a: a/ a/b/", "a/b/TMP: a/ a/b/ a/b/TMP=new", "a/b: a/ a/b/ a/b/file=new",
		},
	},
	"a new folder": {
		kind: "file.folder", request: fileRequest{Path: "a"},
		syncs: []string{".: a/"},
	},
	"new folders": {
		kind: "file.folder", request: fileRequest{Path: "a/b", Parents: true},
		syncs: []string{".: a/", "a: a/ a/b/"},
	},
	"a file that is moved": {
		kind: "file.move", request: fileRequest{Path: "file", To: "sub/moved"}, before: []string{"file=old", "sub/"},
		syncs: []string{".: sub/ sub/moved=old", "sub: sub/ sub/moved=old"},
	},
	"a file that is moved over another": {
		kind: "file.move", request: fileRequest{Path: "file", To: "sub/moved", Replace: true},
		before: []string{"file=new", "sub/", "sub/moved=old"},
		syncs:  []string{".: sub/ sub/moved=new", "sub: sub/ sub/moved=new"},
	},
	"a file that is deleted": {
		kind: "file.delete", request: fileRequest{Path: "file"}, before: []string{"file=old"},
		syncs: []string{".:"},
	},
	"an empty folder that is deleted": {
		kind: "file.delete", request: fileRequest{Path: "sub"}, before: []string{"sub/"},
		syncs: []string{".:"},
	},
	"a folder that is deleted with its files": {
		kind: "file.delete", request: fileRequest{Path: "sub", Recursive: true}, before: []string{"sub/", "sub/file=old"},
		syncs: []string{".:"},
	},
}

func TestChangesAreOnTheDisk(t *testing.T) {
	for name, each := range changes {
		t.Run(name, func(t *testing.T) {
			root := folderWith(t, each.before)
			syncs := watchSyncs(t, root, nil)
			if err := ask(root, each); err != nil {
				t.Fatal(err)
			}
			expectSyncs(t, *syncs, each.syncs)
		})
	}
}

func TestAMoveToAnotherFileSystemIsOnTheDiskBeforeItsSourceIsDeleted(t *testing.T) {
	root := folderWith(t, []string{"file=old", "sub/"})
	syncs := watchSyncs(t, root, nil)
	_, err := slowly(func() (any, error) { return nil, moveAcross(root+"/file", root+"/sub/moved", false) })
	if err != nil {
		t.Fatal(err)
	}
	expectSyncs(t, *syncs, []string{
		"all of sub: file=old sub/ sub/TMP=old", "sub: file=old sub/ sub/moved=old", ".: sub/ sub/moved=old",
	})
}

func TestAWriteWhoseSyncFailsLeavesTheOldFile(t *testing.T) {
	root := folderWith(t, []string{"file=old"})
	watchSyncs(t, root, syscall.EIO)
	write := change{kind: "file.write", request: fileRequest{Path: "file"}, text: "new"}
	if err := ask(root, write); !errors.Is(err, syscall.EIO) {
		t.Errorf("the answer is %v", err)
	}
	if tree := treeBelow(root); tree != "file=old" {
		t.Errorf("the folder has %s", tree)
	}
}

func TestMain(m *testing.M) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			children.reapNow()
		}
	}()
	os.Exit(m.Run())
}

// ask sends a request as the holder does, with paths below `root`.
func ask(root string, asked change) error {
	request := asked.request
	request.Path = encoded(root, request.Path)
	if request.To != "" {
		request.To = encoded(root, request.To)
	}
	s := newChannel().add(1)
	s.received, s.otherHasEnded = [][]byte{[]byte(asked.text)}, true
	_, err := takeFileRequest(&request, asked.kind, s)
	return err
}

func encoded(root, path string) string {
	return base64.StdEncoding.EncodeToString([]byte(root + "/" + path))
}

func folderWith(t *testing.T, entries []string) string {
	root := t.TempDir()
	for _, each := range entries {
		path, content, isFile := strings.Cut(each, "=")
		var err error
		if isFile {
			err = os.WriteFile(root+"/"+path, []byte(content), 0o644)
		} else {
			err = os.Mkdir(root+"/"+path, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// watchSyncs collects the syncs until the end of the test. Each gives the result `failure`.
func watchSyncs(t *testing.T, root string, failure error) *[]string {
	syncs := &[]string{}
	note := func(what, path string) {
		below, _ := filepath.Rel(root, path)
		*syncs = append(*syncs, strings.TrimSpace(what+shown(below)+": "+treeBelow(root)))
	}
	fsync = func(file *os.File) error {
		note("", file.Name())
		return failure
	}
	run = func(command ...string) error {
		if command[0] == "sync" {
			note("all of ", command[len(command)-1])
		}
		return runProgram(command...)
	}
	t.Cleanup(func() { fsync, run = (*os.File).Sync, runProgram })
	return syncs
}

func expectSyncs(t *testing.T, actual, expected []string) {
	if !slices.Equal(actual, expected) {
		t.Errorf("the syncs are\n%s\nand should be\n%s", strings.Join(actual, "\n"), strings.Join(expected, "\n"))
	}
}

func treeBelow(root string) string {
	var found []string
	filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		below, _ := filepath.Rel(root, path)
		if err != nil || below == "." {
			return err
		}
		if entry.IsDir() {
			found = append(found, below+"/")
		} else {
			content, _ := os.ReadFile(path)
			found = append(found, shown(below)+"="+string(content))
		}
		return nil
	})
	return strings.Join(found, " ")
}

var temporaryName = regexp.MustCompile(`\.atrium-[0-9a-f]+\.tmp`)

func shown(path string) string { return temporaryName.ReplaceAllString(path, "TMP") }
