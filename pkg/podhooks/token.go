package podhooks

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"
)

// TokensKey is the key of the credential Secret of a cluster that holds which tokens it may ask with.
const TokensKey = "pod-webhooks"

// handover is for how long a token is still good after another one has taken its place: an API server may go on for a moment with the webhook from
// before, and a pod that it makes then must not pass by the webhooks above.
const handover = time.Minute

// known is what the logical cluster keeps of a token. The token itself is only in the cluster.
type known struct {
	SHA256 string `json:"sha256"`
	// Until is when it ends, nil for the one in use.
	Until *time.Time `json:"until,omitempty"`
}

// NewToken returns a token that nobody can guess.
func NewToken() (string, error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(random), nil
}

func hashed(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Accepts reports whether a token is one of those that are kept.
func Accepts(kept []byte, token string, now time.Time) bool {
	var all []known
	if json.Unmarshal(kept, &all) != nil {
		return false
	}
	hash, accepted := []byte(hashed(token)), false
	for _, k := range all {
		same := subtle.ConstantTimeCompare([]byte(k.SHA256), hash) == 1
		accepted = accepted || same && (k.Until == nil || now.Before(*k.Until))
	}
	return accepted
}

// Renewed returns what is to be kept once a token has taken the place of those that are kept. The one in use before ends soon after.
func Renewed(kept []byte, token string, now time.Time) ([]byte, error) {
	next := []known{{SHA256: hashed(token)}}
	var before []known
	if json.Unmarshal(kept, &before) == nil { // what cannot be read is worth nothing
		for _, k := range before {
			if until := now.Add(handover).UTC().Truncate(time.Second); k.Until == nil {
				next = append(next, known{SHA256: k.SHA256, Until: &until})
			}
		}
	}
	out, err := json.Marshal(next)
	if err != nil {
		return nil, fmt.Errorf("encode the hash of a token: %w", err)
	}
	return out, nil
}
