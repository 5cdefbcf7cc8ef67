// Service Bus with the queues of the platform. Keys are turned off: whoever comes shows a token.

import { roles } from 'roles.bicep'

@description('The name of the namespace.')
param name string

@description('Where it is.')
param location string

@description('The queues.')
param queueNames string[]

@description('Who may do what with which queue.')
param grants {
  process: string
  role: string
  queue: string
}[]

@description('The object ids, by process.')
param principals object

resource namespace 'Microsoft.ServiceBus/namespaces@2024-01-01' = {
  name: name
  location: location
  sku: {
    name: 'Standard'
    tier: 'Standard'
  }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
  }
}

// A message that comes twice is told by the id of its task, so the broker need not look for duplicates.
resource queues 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = [
  for queueName in queueNames: {
    parent: namespace
    name: queueName
    properties: {
      lockDuration: 'PT5M'
      maxDeliveryCount: 10
      defaultMessageTimeToLive: 'P1D'
      deadLetteringOnMessageExpiration: false
      requiresDuplicateDetection: false
    }
  }
]

module granted 'queue-role.bicep' = [
  for grant in grants: {
    name: 'role-${uniqueString(grant.process, grant.role, grant.queue)}'
    params: {
      namespaceName: namespace.name
      queueName: grant.queue
      principalId: principals[grant.process]
      roleId: roles[grant.role]
    }
    dependsOn: [
      queues
    ]
  }
]

@description('The host of the namespace.')
output host string = split(split(namespace.properties.serviceBusEndpoint, '/')[2], ':')[0]
