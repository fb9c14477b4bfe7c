package api

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/manifold-dev/manifold/e2e/framework"
)

// inStore reports whether any value below a prefix in the etcd of a logical cluster has some text in it.
func inStore(t *testing.T, e *framework.Environment, prefix, text string) bool {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(e.Manifold.DataDir(), "etcd", "client.sock")}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	all, err := client.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Kvs) == 0 {
		t.Fatalf("there is nothing below %s", prefix)
	}
	for _, kv := range all.Kvs {
		if bytes.Contains(kv.Value, []byte(text)) {
			return true
		}
	}
	return false
}

// inFiles returns the files below a folder that have some text in them.
func inFiles(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestSecretsAreEncryptedAtRest(t *testing.T) {
	suite.Beside(t)
	e := framework.StartOwn(t, framework.Options{})
	s := framework.NewScenario(t, e)
	const word = "swordfish-of-the-seven-seas"
	s.Logical.Kubectl("create", "secret", "generic", "db", "--from-literal=password="+word)
	s.Logical.Kubectl("create", "configmap", "db", "--from-literal=motto=nothing-to-hide-here")
	if inStore(t, e, "/registry/secrets/"+s.Namespace+"/", word) {
		t.Error("etcd has a Secret in plain text")
	}
	if !inStore(t, e, "/registry/configmaps/"+s.Namespace+"/", "nothing-to-hide-here") {
		t.Error("the test does not find plain text where there is some")
	}
	if err := e.Manifold.Terminate(); err != nil {
		t.Fatal(err)
	}
	if files := inFiles(t, e.Manifold.DataDir(), word); len(files) > 0 {
		t.Errorf("%v have a Secret in plain text", files)
	}
	if files := inFiles(t, e.Manifold.DataDir(), "nothing-to-hide-here"); len(files) == 0 {
		t.Error("the test does not find plain text in files where there is some")
	}

	// Without its key the server says so, and makes no other.
	key, away := filepath.Join(e.Manifold.DataDir(), "encryption", "config.yaml"), filepath.Join(t.TempDir(), "key")
	if err := os.Rename(key, away); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := e.Manifold.Start(ctx); err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "restore it from a backup") {
		t.Errorf("without its key it started, or did not say what to do: %v", err)
	}
	if _, err := os.Stat(key); err == nil {
		t.Error("another key was made")
	}
	content, err := os.ReadFile(away)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := e.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Logical.Kubectl("get", "secret", "db", "-o", "go-template={{.data.password|base64decode}}"); got != word {
		t.Errorf("after all this the Secret says %q", got)
	}
}

func TestSecretsOfAnEarlierVersionAreEncryptedAtTheNextStart(t *testing.T) {
	suite.Beside(t)
	plain := filepath.Join(t.TempDir(), "plain.yaml")
	if err := os.WriteFile(plain, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n"+
		"resources: [{resources: [secrets], providers: [{identity: {}}]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A configuration of the user's counts, and this is as if there were none.
	e := framework.StartOwn(t, framework.Options{ManifoldArgs: []string{"--encryption-provider-config", plain}})
	s := framework.NewScenario(t, e)
	const word = "swordfish-of-the-seven-seas"
	s.Logical.Kubectl("create", "secret", "generic", "db", "--from-literal=password="+word)
	if !inStore(t, e, "/registry/secrets/"+s.Namespace+"/", word) {
		t.Error("the user's configuration does not count")
	}
	if err := e.Manifold.Terminate(); err != nil {
		t.Fatal(err)
	}
	e.Manifold.SetArgs()
	if err := e.Manifold.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if inStore(t, e, "/registry/secrets/", word) {
		t.Error("etcd still has the Secret in plain text")
	}
	if got := s.Logical.Kubectl("get", "secret", "db", "-o", "go-template={{.data.password|base64decode}}"); got != word {
		t.Errorf("after the upgrade the Secret says %q", got)
	}
	s.Logical.Kubectl("patch", "secret", "db", "-p", `{"stringData":{"user":"captain-of-the-nautilus"}}`)
	if inStore(t, e, "/registry/secrets/", "captain-of-the-nautilus") {
		t.Error("what is written after the upgrade is in plain text")
	}
	if err := e.Manifold.Terminate(); err != nil {
		t.Fatal(err)
	}
	if files := inFiles(t, filepath.Join(e.Manifold.DataDir(), "etcd", "data", "member", "snap"), word); len(files) > 0 {
		t.Errorf("the database %v still has the Secret in plain text", files)
	}
}
