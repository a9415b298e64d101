package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Random changes of a drive and of a local folder have the same results and the same errors. In the end the drive has
// what the local folder has, also after the program was killed on the way.
func TestTheDriveBehavesLikeALocalFolder(t *testing.T) {
	for seed := range uint64(rounds()) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := mounted(t)
			local := t.TempDir()
			chance := rand.New(rand.NewPCG(seed, 1))
			for step := range 400 {
				change := randomChange(chance)
				expected, actual := change.apply(local), change.apply(w.path)
				if describe(expected) != describe(actual) {
					t.Fatalf("step %d, %v: %v on the drive, and %v locally", step, change, actual, expected)
				}
				if step%50 == 0 {
					if expected, actual := treeOf(local), treeOf(w.path); expected != actual {
						t.Fatalf("after step %d, %v, there is\n%s\nand locally\n%s", step, change, actual, expected)
					}
				}
				if step == 200 {
					w.kill()
					w.start()
					w.mount(testComputer, testSpace, w.path)
				}
			}
			expected := treeOf(local)
			if actual := treeOf(w.path); actual != expected {
				t.Errorf("there is\n%s\nand locally\n%s", actual, expected)
			}
			w.sync()
			if actual := w.tree(rootID, ""); actual != expected {
				t.Errorf("on the drive is\n%s\nand locally\n%s", actual, expected)
			}
		})
	}
}

// Several programs change the same names at once, while the same happens elsewhere. What each answers depends on chance,
// but in the end both sides have the same.
func TestChangesFromBothSidesAtOnceEndInTheSame(t *testing.T) {
	w := mounted(t)
	var all sync.WaitGroup
	for seed := range uint64(4) {
		all.Go(func() {
			chance := rand.New(rand.NewPCG(seed, 2))
			for range 300 {
				randomChange(chance).apply(w.path)
			}
		})
	}
	for step := range 100 {
		w.write(fmt.Sprintf("a/%c", 'a'+step%4), fmt.Sprint("from elsewhere ", step))
	}
	all.Wait()
	w.sync()
	w.until("both sides have the same", func() bool { return treeOf(w.path) == w.tree(rootID, "") })
}

func rounds() int {
	if count, _ := strconv.Atoi(os.Getenv("ATRIUM_TEST_ROUNDS")); count > 0 {
		return count
	}
	return 6
}

type randomStep struct {
	kind, path, other, text string
	size                    int64
}

func randomChange(chance *rand.Rand) randomStep {
	kinds := []string{"write", "write", "append", "patch", "truncate", "rename", "rename", "unlink", "mkdir", "rmdir",
		"symlink", "replace", "chmod", "read"}
	path := func() string {
		parts := []string{}
		for range 1 + chance.IntN(3) {
			parts = append(parts, string(rune('a'+chance.IntN(4))))
		}
		return strings.Join(parts, "/")
	}
	return randomStep{kinds[chance.IntN(len(kinds))], path(), path(),
		strings.Repeat(string(rune('A'+chance.IntN(26))), chance.IntN(9_000)), int64(chance.IntN(12_000))}
}

func (s randomStep) String() string {
	return fmt.Sprintf("%s %s %s %d %d", s.kind, s.path, s.other, len(s.text), s.size)
}

func (s randomStep) apply(root string) error {
	path, other := root+"/"+s.path, root+"/"+s.other
	open := func(flags int, use func(*os.File) error) error {
		file, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW, 0o644)
		if err != nil {
			return err
		}
		return errors.Join(use(file), file.Close())
	}
	write := func(file *os.File) error {
		_, err := file.WriteString(s.text)
		return err
	}
	switch s.kind {
	case "write":
		return open(os.O_CREATE|os.O_TRUNC|os.O_WRONLY, write)
	case "append":
		return open(os.O_APPEND|os.O_WRONLY, write)
	case "patch":
		return open(os.O_RDWR, func(file *os.File) error {
			_, err := file.WriteAt([]byte(s.text), s.size)
			return err
		})
	case "truncate":
		return open(os.O_WRONLY, func(file *os.File) error { return file.Truncate(s.size) })
	case "rename":
		return syscall.Rename(path, other)
	case "unlink":
		return syscall.Unlink(path)
	case "mkdir":
		return os.Mkdir(path, 0o755)
	case "rmdir":
		return syscall.Rmdir(path)
	case "symlink":
		return os.Symlink(s.other, path)
	case "chmod":
		return open(os.O_RDONLY, func(file *os.File) error {
			info, err := file.Stat()
			if err != nil || info.IsDir() {
				return err
			}
			return file.Chmod(info.Mode() ^ 0o111)
		})
	case "read":
		return open(os.O_RDONLY, func(file *os.File) error {
			_, err := file.Read(make([]byte, 100))
			if err != nil && err.Error() == "EOF" {
				return nil
			}
			return err
		})
	}
	// As editors save.
	if err := os.WriteFile(path+".new", []byte(s.text), 0o644); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	return nil
}

func describe(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return fmt.Sprint(err)
}

func brief(text []byte) string { return fmt.Sprintf("%d %x", len(text), sha256.Sum256(text)) }

func treeOf(root string) string {
	var lines []string
	filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		below, _ := filepath.Rel(root, path)
		if err != nil || below == "." {
			return err
		}
		switch {
		case entry.IsDir():
			lines = append(lines, below+"/")
		case entry.Type() == fs.ModeSymlink:
			target, _ := os.Readlink(path)
			lines = append(lines, below+" -> "+target)
		default:
			text, _ := os.ReadFile(path)
			info, _ := entry.Info()
			lines = append(lines, fmt.Sprintf("%s %v %s", below, info.Mode()&0o100 != 0, brief(text)))
		}
		return nil
	})
	return strings.Join(lines, "\n")
}

// tree describes what the drive has, as treeOf does.
func (w *world) tree(parentID, prefix string) string {
	w.mu.Lock()
	items := w.in(parentID)
	w.mu.Unlock()
	var lines []string
	for _, it := range items {
		path := prefix + it.Name
		switch it.Kind {
		case "folder":
			lines = append(lines, path+"/")
			if below := w.tree(it.ID, path+"/"); below != "" {
				lines = append(lines, below)
			}
		case "symlink":
			lines = append(lines, path+" -> "+it.Target)
		default:
			lines = append(lines, fmt.Sprintf("%s %v %s", path, it.Executable, brief(it.content)))
		}
	}
	return strings.Join(lines, "\n")
}
