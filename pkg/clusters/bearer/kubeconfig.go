package bearer

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Split returns the token of a kubeconfig's current context, and what else there is: equal for two that differ in their token alone.
func Split(kubeconfig []byte) (token string, rest []byte, err error) {
	config, user, err := load(kubeconfig)
	if err != nil {
		return "", nil, err
	}
	token, user.Token = user.Token, ""
	rest, err = clientcmd.Write(*config)
	return token, rest, err
}

// Replace returns a kubeconfig with another token for its current context. The error says that it has not the one that is to be replaced.
func Replace(kubeconfig []byte, token, next string) ([]byte, error) {
	config, user, err := load(kubeconfig)
	if err != nil {
		return nil, err
	}
	if user.Token != token {
		return nil, errors.New("another token has been stored meanwhile")
	}
	user.Token = next
	return clientcmd.Write(*config)
}

func load(kubeconfig []byte) (*clientcmdapi.Config, *clientcmdapi.AuthInfo, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, nil, fmt.Errorf("the kubeconfig does not parse: %w", err)
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil || config.AuthInfos[context.AuthInfo] == nil {
		return nil, nil, errors.New("the kubeconfig has no user in its current context")
	}
	return config, config.AuthInfos[context.AuthInfo], nil
}
