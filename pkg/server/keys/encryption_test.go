package keys

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/manifold-dev/manifold/pkg/server/etcd"
)

const (
	plainText = "correct horse battery staple"
	secretKey = "/registry/secrets/shop/db"
)

// newStore starts an etcd in a folder of its own, and returns it with a client.
func newStore(t *testing.T) (string, *etcd.Server, *clientv3.Client) {
	t.Helper()
	root, err := os.MkdirTemp("", "manifold") // the path of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	store, err := etcd.Start(t.Context(), filepath.Join(root, "etcd"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{store.Endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return root, store, client
}

func put(t *testing.T, client *clientv3.Client, key, value string) {
	t.Helper()
	if _, err := client.Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
}

func stored(t *testing.T, client *clientv3.Client, key string) string {
	t.Helper()
	got, err := client.Get(t.Context(), key)
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("%d values of %s, %v", len(got.Kvs), key, err)
	}
	return string(got.Kvs[0].Value)
}

func TestSecretsOfAnEarlierVersionAreEncryptedOnce(t *testing.T) {
	dir, store, client := newStore(t)
	file := filepath.Join(dir, "encryption", "config.yaml")
	for _, key := range []string{secretKey, "/registry/secrets/shop/another", "/registry/configmaps/shop/db", "/registry/secretstores/shop/db"} {
		put(t, client, key, plainText)
	}
	if err := EncryptSecrets(t.Context(), file, store.Endpoint, "/registry"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %v, %v, want it for the owner alone", info.Mode(), err)
	}
	for _, key := range []string{secretKey, "/registry/secrets/shop/another"} {
		if got := stored(t, client, key); !strings.HasPrefix(got, "k8s:enc:secretbox:v1:manifold:") || strings.Contains(got, plainText) {
			t.Errorf("%s is stored as %q", key, got)
		}
	}
	for _, key := range []string{"/registry/configmaps/shop/db", "/registry/secretstores/shop/db"} {
		if got := stored(t, client, key); got != plainText {
			t.Errorf("%s, which is no Secret, is stored as %q", key, got)
		}
	}
	if _, err := client.Get(t.Context(), secretKey, clientv3.WithRev(2)); err == nil {
		t.Error("the plain text can still be read from the history")
	}

	before := stored(t, client, secretKey)
	if err := EncryptSecrets(t.Context(), file, store.Endpoint, "/registry"); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, client, secretKey); got != before {
		t.Error("what was encrypted already is written again at the next start")
	}
}

func TestPlainTextOfSecretsIsInNoDatabasePage(t *testing.T) {
	dir, store, client := newStore(t)
	file := filepath.Join(dir, "encryption", "config.yaml")
	put(t, client, secretKey, plainText)
	if _, err := client.Delete(t.Context(), secretKey); err != nil { // the history has it alone
		t.Fatal(err)
	}
	put(t, client, "/registry/secrets/shop/another", plainText)
	if err := EncryptSecrets(t.Context(), file, store.Endpoint, "/registry"); err != nil {
		t.Fatal(err)
	}
	store.Close()
	err := filepath.WalkDir(filepath.Join(dir, "etcd", "data", "member", "snap"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(plainText)) {
			t.Errorf("%s has the plain text", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMoreSecretsThanAPageAreEncrypted(t *testing.T) {
	dir, store, client := newStore(t)
	file := filepath.Join(dir, "encryption", "config.yaml")
	names := "abcdefghijklmnopqrstuvwxyz"
	for _, a := range names[:2*secretsPage/len(names)] {
		for _, b := range names {
			put(t, client, secretKey+string(a)+string(b), plainText)
		}
	}
	if err := EncryptSecrets(t.Context(), file, store.Endpoint, "/registry"); err != nil {
		t.Fatal(err)
	}
	all, err := client.Get(t.Context(), secretKey, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		if bytes.Contains(kv.Value, []byte(plainText)) {
			t.Errorf("%s is stored in plain text", kv.Key)
		}
	}
}

func TestAKeyThatAnAdminPutsFirstIsUsedForAll(t *testing.T) {
	dir, store, client := newStore(t)
	file := filepath.Join(dir, "encryption", "config.yaml")
	put(t, client, secretKey, plainText)
	if err := EncryptSecrets(t.Context(), file, store.Endpoint, "/registry"); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first := "- name: second\n        secret: " + strings.Repeat("A", 43) + "=\n      - name: manifold"
	rotated := strings.Replace(string(config), "- name: manifold", first, 1)
	if err := os.WriteFile(file, []byte(rotated), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := EncryptSecrets(t.Context(), file, store.Endpoint, "/registry"); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, client, secretKey); !strings.HasPrefix(got, "k8s:enc:secretbox:v1:second:") {
		t.Errorf("it is stored as %q, want it with the second key", got)
	}
}

func TestAKeyThatIsLostOrDamagedStopsTheStart(t *testing.T) {
	for name, test := range map[string]struct {
		change func(file string) error
		want   string
	}{
		"lost":         {os.Remove, "restore it from a backup"},
		"emptied":      {func(file string) error { return os.WriteFile(file, nil, 0o600) }, "is damaged"},
		"cut off":      {func(file string) error { return os.Truncate(file, 150) }, "is damaged"},
		"another key":  {another, "read Secret shop/db with the key"},
		"about others": {func(file string) error { return replaceIn(file, "- secrets", "- configmaps") }, "says nothing of Secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, store, client := newStore(t)
			file := filepath.Join(dir, "encryption", "config.yaml")
			put(t, client, secretKey, plainText)
			if err := EncryptSecrets(t.Context(), file, store.Endpoint, "/registry"); err != nil {
				t.Fatal(err)
			}
			before := stored(t, client, secretKey)
			if err := test.change(file); err != nil {
				t.Fatal(err)
			}
			changed, _ := os.ReadFile(file)
			err := EncryptSecrets(t.Context(), file, store.Endpoint, "/registry")
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), file) {
				t.Errorf("error %v, want %q and the file in it", err, test.want)
			}
			if now, _ := os.ReadFile(file); !bytes.Equal(now, changed) {
				t.Error("the file was written, although what it was needed for is there")
			}
			if got := stored(t, client, secretKey); got != before {
				t.Error("the Secret was written")
			}
		})
	}
}

// another replaces the key by one of somebody else.
func another(file string) error {
	if err := os.Remove(file); err != nil {
		return err
	}
	key := bytes.Repeat([]byte{7}, encryptionKeySize)
	config, err := marshalConfig(key)
	if err != nil {
		return err
	}
	return writeDurably(file, config)
}

func replaceIn(file, old, next string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(strings.Replace(string(content), old, next, 1)), 0o600)
}
