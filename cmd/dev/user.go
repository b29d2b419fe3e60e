package main

import (
	"path/filepath"
	"syscall"
)

// userCredential makes a job the ordinary user's. It has no capability and no other group left.
func userCredential() *syscall.Credential {
	return &syscall.Credential{Uid: ordinary, Gid: ordinary, Groups: []uint32{}}
}

// userEnv points what a program writes to folders under dir that are the user's own.
func userEnv(dir string) []string {
	return []string{
		"HOME=" + filepath.Join(dir, "home"),
		"TMPDIR=" + filepath.Join(dir, "run"),
		"XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"),
		"GOCACHE=" + filepath.Join(dir, "home", "go-build"),
		"USER=user", "LOGNAME=user",
	}
}
