// One process as a container app.

@description('The name of the app.')
param name string

@description('Where it runs.')
param location string

@description('The environment in which it runs.')
param environmentId string

@description('The image.')
param image string

@description('The registry of the image, which the identity may pull from; empty: everybody may.')
param registryServer string

@description('What follows `graticule` on the command line.')
param arguments string[]

@description('The port on which the process listens, and tells how it is.')
param port int

@description('Who can reach the port.')
param reach 'everyone' | 'environment' | 'probes'

@description('Who the process is.')
param identity {
  id: string
  clientId: string
  name: string
}

@description('Its settings.')
param variables {
  name: string
  value: string
}[]

@description('Its settings that are secrets of the vault.')
param secrets {
  variable: string
  secret: string
}[] = []

@description('The vault.')
param vaultUri string

@description('How many CPUs one of it has; its disk depends on them: 4 GiB with one, 8 GiB with more.')
param cpu string

@description('How much memory one of it has.')
param memory string

@description('How many run at least.')
param atLeast int

@description('How many run at most.')
param atMost int

@description('When more of it are started; empty: by requests.')
param scaleRules array = []

@description('An identity for the scale rules alone, which the process cannot use.')
param scalerId string = ''

var scalers = empty(scalerId) ? [] : [scalerId]
var own = [
  { name: 'AZURE_CLIENT_ID', value: identity.clientId }
  { name: 'AZURE_TOKEN_CREDENTIALS', value: 'ManagedIdentityCredential' }
  { name: 'GRATICULE_HOST', value: '0.0.0.0' }
  { name: 'GRATICULE_PORT', value: string(port) }
  { name: 'GRATICULE_LOG_FORMAT', value: 'json' }
]
var fromVault = map(secrets, each => { name: each.variable, secretRef: each.secret })

resource app 'Microsoft.App/containerApps@2025-01-01' = {
  name: name
  location: location
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: toObject(concat([identity.id], scalers), id => id, id => {})
  }
  properties: {
    environmentId: environmentId
    workloadProfileName: 'Consumption'
    configuration: {
      activeRevisionsMode: 'Single'
      identitySettings: map(scalers, id => { identity: id, lifecycle: 'None' })
      ingress: reach == 'probes' ? null : {
        external: reach == 'everyone'
        targetPort: port
        transport: 'auto'
        allowInsecure: false
      }
      registries: empty(registryServer) ? [] : [
        {
          server: registryServer
          identity: identity.id
        }
      ]
      secrets: map(secrets, each => {
        name: each.secret
        keyVaultUrl: '${vaultUri}secrets/${each.secret}'
        identity: identity.id
      })
    }
    template: {
      // A worker that stops has half a minute to save what it did, and some time to give the rest back.
      terminationGracePeriodSeconds: 60
      containers: [
        {
          name: 'process'
          image: image
          command: ['graticule']
          args: arguments
          env: concat(own, variables, fromVault)
          resources: {
            cpu: json(cpu)
            memory: memory
          }
          probes: [
            {
              type: 'Startup'
              httpGet: {
                path: '/livez'
                port: port
              }
              periodSeconds: 10
              failureThreshold: 10
            }
            {
              type: 'Liveness'
              httpGet: {
                path: '/livez'
                port: port
              }
              periodSeconds: 10
              timeoutSeconds: 5
              failureThreshold: 3
            }
            {
              type: 'Readiness'
              httpGet: {
                path: '/readyz'
                port: port
              }
              periodSeconds: 10
              timeoutSeconds: 5
              failureThreshold: 3
            }
          ]
        }
      ]
      scale: {
        minReplicas: atLeast
        maxReplicas: atMost
        rules: scaleRules
      }
    }
  }
}

@description('The host under which the app is reached; empty when it is not.')
output host string = reach == 'probes' ? '' : app.properties.configuration.ingress.fqdn
