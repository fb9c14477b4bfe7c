package server

import (
	"strings"
	"testing"
)

func TestWhereWebhooksOfPipelinesAreAnswered(t *testing.T) {
	for address, refused := range map[string]bool{"": false, "127.0.0.1:6444": false, ":6444": false, "[::1]:6444": false, "6444": true, "127.0.0.1": true, "a:b:c": true} {
		err := (&Promotions{WebhookAddress: address}).validate()
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "--promotion-webhook-address") {
			t.Errorf("%q: %v, want it refused: %t", address, err, refused)
		}
	}
	if NewOptions().Promotions.WebhookAddress != "" {
		t.Error("they are answered although nobody has asked for it")
	}
}
