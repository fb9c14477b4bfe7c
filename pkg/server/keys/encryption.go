package keys

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"
)

const (
	// encryptionKeySize is that of a key of secretbox, which needs no rotation after some number of writes, as AES-GCM with random nonces does.
	encryptionKeySize = 32
	// encryptedPrefix begins every value that an encryption provider of Kubernetes has written.
	encryptedPrefix = "k8s:enc:"
	// secretsPage is how many Secrets are read from etcd at a time.
	secretsPage = 100
)

// encryption keeps the Secrets of the embedded etcd encrypted with a key in the data directory.
type encryption struct {
	// file is an EncryptionConfiguration.
	file string
	// prefix is that of all keys in etcd.
	prefix string
	client *clientv3.Client
}

// EncryptSecrets makes a key unless there is one, in a file for --encryption-provider-config, and encrypts what the embedded etcd has stored
// under prefix in plain text, as earlier versions have left it. The API server must not have started. A key that is lost or damaged is an error
// while anything is encrypted with it.
func EncryptSecrets(ctx context.Context, file, endpoint, prefix string) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
	if err != nil {
		return fmt.Errorf("read the embedded etcd: %w", err)
	}
	defer client.Close()
	e := encryption{file: file, prefix: prefix, client: client}
	if err := e.ensureKey(ctx); err != nil {
		return err
	}
	return e.encryptStored(ctx)
}

// ensureKey makes a key if there is none and nothing that one would be needed for.
func (e encryption) ensureKey(ctx context.Context) error {
	_, err := os.Stat(e.file)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = e.eachSecret(ctx, func(name string, stored []byte, _ int64) error {
		if bytes.HasPrefix(stored, []byte(encryptedPrefix)) {
			return fmt.Errorf("start without a key: Secret %s is encrypted, and the file with the key, %s, is missing: restore it from a backup; if Secrets were encrypted "+
				"with a configuration of yours, start with --encryption-provider-config and that one", name, e.file)
		}
		return nil
	})
	if err != nil {
		return err
	}
	key := make([]byte, encryptionKeySize)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	config, err := marshalConfig(key)
	if err != nil {
		return err
	}
	if err := writeDurably(e.file, config); err != nil {
		return fmt.Errorf("keep the key that Secrets are encrypted with: %w", err)
	}
	return nil
}

// marshalConfig has Secrets written with a key, and read also as an earlier version has left them.
func marshalConfig(key []byte) ([]byte, error) {
	return yaml.Marshal(&apiserverv1.EncryptionConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: apiserverv1.SchemeGroupVersion.String(), Kind: "EncryptionConfiguration"},
		Resources: []apiserverv1.ResourceConfiguration{{
			Resources: []string{"secrets"},
			Providers: []apiserverv1.ProviderConfiguration{
				{Secretbox: &apiserverv1.SecretboxConfiguration{
					Keys: []apiserverv1.Key{{Name: "manifold", Secret: base64.StdEncoding.EncodeToString(key)}},
				}},
				{Identity: &apiserverv1.IdentityConfiguration{}},
			},
		}},
	})
}

// writeDurably writes a file for the owner's eyes alone. Once it returns, the whole file survives a crash; before, there is none.
func writeDurably(file string, data []byte) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(dir, ".new-") // readable for the owner alone
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(data)
	if err := errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), file); err != nil {
		return err
	}
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(dir)))
}

func syncDir(dir string) error {
	opened, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}

// encryptStored reads every Secret, which proves that the key is the right one, and encrypts anew those that the first provider of the
// configuration has not written: those in plain text, and after an admin has put a new key before the old one, all of them.
func (e encryption) encryptStored(ctx context.Context) error {
	loaded, err := encryptionconfig.LoadEncryptionConfig(ctx, e.file, false, "")
	if err != nil {
		return fmt.Errorf("the file with the key that Secrets are encrypted with, %s, is damaged: restore it from a backup: %w", e.file, err)
	}
	transformer := loaded.Transformers[schema.GroupResource{Resource: "secrets"}]
	if transformer == nil {
		return fmt.Errorf("the file with the key that Secrets are encrypted with, %s, says nothing of Secrets: restore it from a backup", e.file)
	}
	rewritten := 0
	err = e.eachSecret(ctx, func(name string, stored []byte, revision int64) error {
		context := value.DefaultContext(path.Join(e.prefix, "secrets", name))
		plain, stale, err := transformer.TransformFromStorage(ctx, stored, context)
		if err != nil {
			return fmt.Errorf("read Secret %s with the key in %s: %w; if it is another one than it was encrypted with, restore that from a backup", name, e.file, err)
		}
		if !stale {
			return nil
		}
		rewritten++
		return e.rewrite(ctx, name, plain, revision, transformer)
	})
	if err != nil || rewritten == 0 {
		return err
	}
	klog.FromContext(ctx).Info("Encrypted Secrets that were stored in plain text or with another key", "count", rewritten)
	return e.forgetHistory(ctx)
}

// rewrite stores a Secret as the first provider writes it. Nobody else writes before the API server has started.
func (e encryption) rewrite(ctx context.Context, name string, plain []byte, revision int64, transformer value.Transformer) error {
	key := path.Join(e.prefix, "secrets", name)
	encrypted, err := transformer.TransformToStorage(ctx, plain, value.DefaultContext(key))
	if err != nil {
		return fmt.Errorf("encrypt Secret %s: %w", name, err)
	}
	answer, err := e.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
		Then(clientv3.OpPut(key, string(encrypted), clientv3.WithIgnoreLease())).Commit()
	switch {
	case err != nil:
		return fmt.Errorf("encrypt Secret %s: %w", name, err)
	case !answer.Succeeded:
		return fmt.Errorf("encrypt Secret %s: somebody else writes to the embedded etcd", name)
	}
	return nil
}

// forgetHistory has etcd drop the revisions from before, and the pages of its database that held them. Its log of writes keeps them until it
// has come round.
func (e encryption) forgetHistory(ctx context.Context) error {
	now, err := e.client.Get(ctx, e.prefix, clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("read the embedded etcd: %w", err)
	}
	if _, err := e.client.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return fmt.Errorf("compact the embedded etcd: %w", err)
	}
	if _, err := e.client.Defragment(ctx, e.client.Endpoints()[0]); err != nil {
		return fmt.Errorf("defragment the embedded etcd: %w", err)
	}
	return nil
}

// eachSecret visits every Secret as etcd has it, by NAMESPACE/NAME.
func (e encryption) eachSecret(ctx context.Context, visit func(name string, stored []byte, revision int64) error) error {
	root := path.Join(e.prefix, "secrets") + "/"
	end := clientv3.GetPrefixRangeEnd(root)
	for from := root; ; {
		page, err := e.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(secretsPage))
		if err != nil {
			return fmt.Errorf("read Secrets from the embedded etcd: %w", err)
		}
		for _, kv := range page.Kvs {
			if err := visit(string(kv.Key[len(root):]), kv.Value, kv.ModRevision); err != nil {
				return err
			}
		}
		if !page.More || len(page.Kvs) == 0 {
			return nil
		}
		from = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
}
