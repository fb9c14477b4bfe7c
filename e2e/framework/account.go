package framework

import (
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ServiceAccount makes a ServiceAccount that has a ClusterRole in the scenario's namespace and returns a kubeconfig of it.
func ServiceAccount(s *Scenario, name, clusterRole string) string {
	s.Helper()
	return ServiceAccountWith(s, name, "--clusterrole="+clusterRole)
}

// ServiceAccountWith is ServiceAccount with the role as "kubectl create rolebinding" takes it, such as "--role=NAME". The role lets it get pods.
func ServiceAccountWith(s *Scenario, name, role string) string {
	s.Helper()
	s.Logical.Kubectl("create", "serviceaccount", name)
	s.Logical.Kubectl("create", "rolebinding", name, role, "--serviceaccount="+s.Namespace+":"+name)
	token := strings.TrimSpace(s.Logical.Kubectl("create", "token", name))

	admin, err := clientcmd.LoadFromFile(s.Logical.Kubeconfig)
	if err != nil {
		s.Fatal(err)
	}
	current := admin.Contexts[admin.CurrentContext]
	admin.AuthInfos = map[string]*clientcmdapi.AuthInfo{current.AuthInfo: {Token: token}}
	file := filepath.Join(s.TempDir(), name+".kubeconfig")
	if err := clientcmd.WriteToFile(*admin, file); err != nil {
		s.Fatal(err)
	}
	user := strings.TrimSpace(s.Logical.As(file).Kubectl("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"))
	if want := "system:serviceaccount:" + s.Namespace + ":" + name; user != want {
		s.Fatalf("the token is that of %q, want %q", user, want)
	}
	s.Logical.Poll("the role binding counts", func() error {
		return Failure(s.Logical.As(file).Try("auth", "can-i", "get", "pods"))
	})
	return file
}
