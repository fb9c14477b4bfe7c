package podhooks

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// MaxChange bounds how much webhooks may change of a pod. It is written on the pod, all of whose annotations may have 256 KiB.
const MaxChange = 64 << 10

// Key proves that a change comes of the webhooks of the logical cluster. All processes that serve it have the same.
type Key []byte

// DeriveKey makes a key of a secret that a logical cluster has for another purpose, for which it is of no use.
func DeriveKey(secret []byte) (Key, error) {
	if len(secret) == 0 {
		return nil, errors.New("make the key that proves what webhooks have changed of a pod: there is no secret to make it of")
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "manifold.dev: what webhooks have changed of a pod", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("make the key that proves what webhooks have changed of a pod: %w", err)
	}
	return key, nil
}

// Subject is the pod that a change is of. A change of one is none of another.
type Subject struct {
	// Cluster is where it is made, Namespace and Name are its own there.
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Workload is the UID of the workload above that it is of.
	Workload types.UID `json:"workload"`
}

// Seal returns a change, which is a strategic merge patch, with the proof of it.
func (k Key) Seal(of Subject, change []byte) string {
	return k.proof(of, change) + ":" + string(change)
}

// Open returns the change that Seal was given for the same pod; nil if it was given none.
func (k Key) Open(of Subject, sealed string) []byte {
	proof, change, ok := strings.Cut(sealed, ":")
	if !ok || len(k) == 0 || len(change) > MaxChange || !hmac.Equal([]byte(proof), []byte(k.proof(of, []byte(change)))) {
		return nil
	}
	return []byte(change)
}

func (k Key) proof(of Subject, change []byte) string {
	about, err := json.Marshal(of) // in which no value can be taken for another
	if err != nil {
		return ""
	}
	mac := hmac.New(sha256.New, k)
	mac.Write(about)
	mac.Write([]byte{0})
	mac.Write(change)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
