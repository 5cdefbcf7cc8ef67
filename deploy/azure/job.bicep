// A command that ends: started by hand, or at its time.

@description('The name of the job.')
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

@description('Who the command is.')
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

@description('When it runs, as cron has it; empty: when it is started.')
param schedule string = ''

@description('How many seconds it may take.')
param timeout int = 7200

var own = [
  { name: 'AZURE_CLIENT_ID', value: identity.clientId }
  { name: 'AZURE_TOKEN_CREDENTIALS', value: 'ManagedIdentityCredential' }
  { name: 'GRATICULE_LOG_FORMAT', value: 'json' }
]

resource job 'Microsoft.App/jobs@2025-01-01' = {
  name: name
  location: location
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identity.id}': {}
    }
  }
  properties: {
    environmentId: environmentId
    workloadProfileName: 'Consumption'
    configuration: {
      triggerType: empty(schedule) ? 'Manual' : 'Schedule'
      manualTriggerConfig: empty(schedule) ? { parallelism: 1, replicaCompletionCount: 1 } : null
      scheduleTriggerConfig: empty(schedule) ? null : { cronExpression: schedule, parallelism: 1, replicaCompletionCount: 1 }
      replicaTimeout: timeout
      replicaRetryLimit: 1
      registries: empty(registryServer) ? [] : [
        {
          server: registryServer
          identity: identity.id
        }
      ]
    }
    template: {
      containers: [
        {
          name: 'command'
          image: image
          command: ['graticule']
          args: arguments
          env: concat(own, variables)
          resources: {
            cpu: json('0.5')
            memory: '1Gi'
          }
        }
      ]
    }
  }
}
