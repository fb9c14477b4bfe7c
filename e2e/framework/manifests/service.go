package manifests

import "fmt"

// ServiceFor is what pods labelled app=NAME are reached by.
func ServiceFor(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {selector: {app: %s}, ports: [{port: 80}]}", name, name)
}

// WebService is a Service "web" for the pods of that app.
const WebService = `
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  selector:
    app: web
  ports:
  - name: http
    port: 80
    targetPort: 8080
`

// Site leads to the Service "web", as most Ingresses do, with a certificate and a file of passwords.
const Site = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: site
  annotations:
    nginx.ingress.kubernetes.io/auth-secret: users
spec:
  tls:
  - hosts: [shop.example.com]
    secretName: certificate
  rules:
  - host: shop.example.com
    http:
      paths:
      - path: /
        pathType: Prefix
        backend:
          service:
            name: web
            port:
              number: 80
---
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  selector:
    app: web
  ports:
  - port: 80
    targetPort: 8080
---
apiVersion: v1
kind: Secret
metadata:
  name: certificate
stringData:
  tls.crt: certificate
---
apiVersion: v1
kind: Secret
metadata:
  name: users
stringData:
  auth: nobody
`
