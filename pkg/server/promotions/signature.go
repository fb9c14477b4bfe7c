package promotions

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"hash"
	"strings"

	"github.com/manifold-dev/manifold/pkg/delivery/promotion"
	"github.com/manifold-dev/manifold/pkg/delivery/weave"
)

// headerSignature has the algorithm, and after a "=" the HMAC of the body in hexadecimal.
const headerSignature = "X-Signature"

// algorithms are the hashes that signatures may be made by.
var algorithms = map[string]func() hash.Hash{
	"sha224": sha256.New224,
	"sha256": sha256.New,
	"sha384": sha512.New384,
	"sha512": sha512.New,
}

// signed reports whether a signature is the one of a body by a key. Nothing is signed by an empty key.
func signed(signature string, body, key []byte) bool {
	name, digest, cut := strings.Cut(signature, "=")
	algorithm, known := algorithms[name]
	got, err := hex.DecodeString(digest)
	if !cut || !known || err != nil || len(key) == 0 {
		return false
	}
	mac := hmac.New(algorithm, key)
	mac.Write(body)
	return hmac.Equal(got, mac.Sum(nil))
}

// secretOf names the Secret that signs the calls about promotions to an environment: the one that its own strategy names, or else that of the pipeline.
// It is "" if none is named.
func secretOf(p *weave.Pipeline, index int) string {
	if index >= 0 {
		if to := promotion.To(p.Spec, index); to != nil && to.Strategy.SecretRef != nil {
			return to.Strategy.SecretRef.Name
		}
	}
	if of := p.Spec.Promotion; of != nil && of.Strategy.SecretRef != nil {
		return of.Strategy.SecretRef.Name
	}
	return ""
}
