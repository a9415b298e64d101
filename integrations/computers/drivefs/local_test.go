package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestIgnoredNamesStayLocal(t *testing.T) {
	w := mounted(t)
	w.write("project/.driveignore", "# local\n*.log\n!keep.log\n/build\ndocs/**/draft\n")
	w.write("project/docs/a/x", "x")
	for _, path := range []string{"project/node_modules/pkg/index.js", "project/debug.log", "project/sub/deep.log",
		"project/build/out", "project/docs/a/draft", "x.swp"} {
		must(t, os.MkdirAll(filepath.Dir(w.at(path)), 0o755))
		w.save(path, "local")
		w.expect(path, "local")
	}
	for _, path := range []string{"project/keep.log", "project/sub/build", "target"} {
		w.save(path, "shared")
	}
	w.sync()
	for _, path := range []string{"project/node_modules", "project/debug.log", "project/sub/deep.log", "project/build",
		"project/docs/a/draft", "x.swp"} {
		if w.find(path) != nil {
			t.Errorf("%s is on the drive", path)
		}
	}
	for _, path := range []string{"project/keep.log", "project/sub/build", "target"} {
		w.expectOnDrive(path, "shared")
	}
	if names := namesIn(t, w.at("project")); names != ".driveignore build debug.log docs keep.log node_modules sub" {
		t.Errorf("the names are %s", names)
	}
	expectError(t, os.Rename(w.at("target"), w.at("project/target.log")), syscall.EXDEV)
	must(t, os.Rename(w.at("project/debug.log"), w.at("project/sub/other.log")))
	w.expect("project/sub/other.log", "local")
	// They follow their folder, and outlive the mount.
	must(t, os.Rename(w.at("project"), w.at("renamed")))
	w.expect("renamed/node_modules/pkg/index.js", "local")
	w.kill()
	w.start()
	w.mount(testComputer, testSpace, w.path)
	w.expect("renamed/node_modules/pkg/index.js", "local")
	must(t, os.RemoveAll(w.at("renamed")))
	if names := namesIn(t, w.path); names != "target x.swp" {
		t.Errorf("the names are %s", names)
	}
}

func TestALinkInTheLocalFolderDoesNotLeadOut(t *testing.T) {
	w := mounted(t)
	outside := t.TempDir()
	must(t, os.WriteFile(outside+"/secret", []byte("secret"), 0o644))
	must(t, os.Mkdir(w.at("node_modules"), 0o755))
	w.save("node_modules/own", "own")
	must(t, os.MkdirAll(w.at("node_modules/sub"), 0o755))
	w.save("node_modules/sub/own", "own")
	// Who has the folder open asks the program for what is below it. (A path would lead to the link as any other link
	// does, which the computer's own kernel follows.)
	sub, err := syscall.Open(w.at("node_modules/sub"), syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	must(t, err)
	defer syscall.Close(sub)
	must(t, syscall.Fstat(sub, &syscall.Stat_t{}))
	local := w.path + ".local/" + rootID + "/node_modules"
	must(t, os.Rename(local+"/sub", local+"/moved"))
	must(t, os.Symlink(outside, local+"/sub"))
	for _, name := range []string{"secret", "planted"} {
		if file, err := syscall.Openat(sub, name, syscall.O_RDWR|syscall.O_CREAT, 0o644); err == nil {
			t.Errorf("%s was opened outside", name)
			syscall.Close(file)
		}
	}
	if syscall.Mkdirat(sub, "new", 0o755) == nil || syscall.Unlinkat(sub, "secret") == nil ||
		syscall.Fchmodat(sub, "secret", 0o777, 0) == nil {
		t.Error("a change outside succeeded")
	}
	if names := namesIn(t, outside); names != "secret" {
		t.Errorf("outside is %s", names)
	}
	status, _ := w.control("DELETE", "/mounts/"+testComputer+"?timeoutMs=1000", nil)
	if status != 204 {
		t.Fatalf("unmount: %d", status)
	}
	must(t, os.RemoveAll(w.path+".local"))
	must(t, os.Symlink(outside, w.path+".local"))
	status, _ = w.control("PUT", "/mounts/"+testComputer, mountSpec{SpaceID: testSpace, Target: w.path,
		LocalDir: w.path + ".local"})
	if status == 204 {
		t.Error("a link in place of the local folder was accepted")
	}
}

func TestHostileNames(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"..", ".", "a/b", "", "nul\x00", "new\nline"} {
		w.set(func() { w.touch(w.add(rootID, name, "file")) })
	}
	w.write("fine", "fine")
	w.mount(testComputer, testSpace, w.path)
	if names := namesIn(t, w.path); names != "fine" {
		t.Errorf("the names are %q", names)
	}
	expectError(t, os.WriteFile(w.at(strings.Repeat("a", 256)), nil, 0o644), syscall.ENAMETOOLONG)
	for _, name := range []string{"new\nline", "\xff\xfe", "bell\a", "del\x7f", "replaced\uFFFD"} {
		expectError(t, os.WriteFile(w.at(name), nil, 0o644), syscall.EINVAL)
		expectError(t, os.Mkdir(w.at(name), 0o755), syscall.EINVAL)
		_, err := os.Stat(w.at(name))
		expectError(t, err, syscall.ENOENT)
	}
	status, _ := w.control("PUT", "/mounts/"+testComputer, mountSpec{SpaceID: "../other", Target: w.path})
	if status != 422 {
		t.Errorf("a space that is a path is answered with %d", status)
	}
	status, _ = w.control("PUT", "/mounts/..%2Fother", mountSpec{SpaceID: testSpace, Target: w.path})
	if status != 422 {
		t.Errorf("a computer that is a path is answered with %d", status)
	}
}

func TestSpacesShareNoCache(t *testing.T) {
	w := mounted(t)
	w.write("file", "same content")
	w.mount("cmp_2", "spc_2", w.path+"2")
	w.expect("file", "same content")
	other, err := os.ReadFile(w.path + "2/file")
	must(t, err)
	if string(other) != "same content" {
		t.Errorf("the other has %q", other)
	}
	paths, _ := filepath.Glob(w.dir + "/cache/*/*")
	if len(paths) != 2 || filepath.Dir(paths[0]) == filepath.Dir(paths[1]) || w.count("GET /content") != 2 {
		t.Errorf("the cache has %v after %d fetches", paths, w.count("GET /content"))
	}
}

func TestNamesThatLookTheSameAreTheSame(t *testing.T) {
	w := mounted(t)
	const composed, decomposed = "caf\u00e9", "cafe\u0301"
	w.write(composed, "coffee")
	w.expect(decomposed, "coffee")
	expectError(t, os.Mkdir(w.at(decomposed), 0o755), syscall.EEXIST)
	w.save(decomposed, "tea")
	w.sync()
	w.expectOnDrive(composed, "tea")
	if names := namesIn(t, w.path); names != composed {
		t.Errorf("the names are %q", names)
	}
}

func TestLinksAndDevicesAreRefused(t *testing.T) {
	w := mounted(t)
	w.save("file", "text")
	expectError(t, os.Link(w.at("file"), w.at("hard")), syscall.EPERM)
	expectError(t, syscall.Mkfifo(w.at("fifo"), 0o644), syscall.EPERM)
	expectError(t, syscall.Setxattr(w.at("file"), "user.a", []byte("b"), 0), syscall.ENOTSUP)
	lock := func() error {
		file, err := os.Open(w.at("file"))
		must(t, err)
		t.Cleanup(func() { file.Close() })
		return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	must(t, lock())
	expectError(t, lock(), syscall.EWOULDBLOCK)
}

func TestPatternsOfIgnoredNames(t *testing.T) {
	cases := []struct {
		rule, path string
		isIgnored  bool
	}{
		{"*.log", "a/b/x.log", true},
		{"/*.log", "a/x.log", false},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b", true},
		{"a/**/b", "a/x/y/c", false},
		{"a/**", "a", false},
		{"a/**", "a/x/y", true},
		{"**/a/**/b/c", "x/a/b/b/c", true},
		// With going back to every "**", this would take longer than the universe has been there.
		{strings.Repeat("**/", 40) + "no/such", strings.Repeat("x/", 90) + "y", false},
	}
	for _, each := range cases {
		isIgnored, _ := parseRules(each.rule+"\n").decide(strings.Split(each.path, "/"), false)
		if isIgnored != each.isIgnored {
			t.Errorf("%.30s for %.30s: %v", each.rule, each.path, isIgnored)
		}
	}
}

func TestAPipeInThePlaceOfALocalFolderIsNotWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.set(func() { w.touch(w.add(rootID, "project", "folder")) })
	must(t, os.Mkdir(w.path+".local", 0o755))
	must(t, syscall.Mkfifo(w.path+".local/"+w.find("project").ID, 0o644))
	w.mount(testComputer, testSpace, w.path)
	if names := namesIn(t, w.at("project")); names != "" {
		t.Errorf("the folder has %s", names)
	}
}

func TestAFileThatTheDriveDoesNotAllowThereIsPutIntoItsRoot(t *testing.T) {
	w := mounted(t)
	must(t, os.Mkdir(w.at("folder"), 0o755))
	w.set(func() {
		w.refuse = func(r *http.Request) int {
			if r.Method == "PUT" && r.URL.Query().Get("name") == "refused" {
				return 422
			}
			return 0
		}
	})
	w.save("folder/refused", "text")
	w.sync()
	w.expectOnDrive("unnamed file 0000000000000001", "text")
}
