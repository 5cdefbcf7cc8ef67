// A storage account of one zone. It has no keys to lose, and nothing in it is public.

import { roles } from 'roles.bicep'

@description('The name of the account.')
param name string

@description('Where it is.')
param location string

@description('Its containers.')
param containerNames string[]

@description('The subnets from which it is reached.')
param subnets string[]

@description('Addresses (or ranges) from which it is reached, too.')
param addresses string[] = []

@description('Who may do what with all of the account.')
param grants {
  process: string
  role: string
}[] = []

@description('Who may do what with one container.')
param containerGrants {
  process: string
  role: string
  container: string
}[] = []

@description('The object ids, by process.')
param principals object

resource account 'Microsoft.Storage/storageAccounts@2023-05-01' = {
  name: name
  location: location
  kind: 'StorageV2'
  sku: {
    name: 'Standard_ZRS'
  }
  properties: {
    accessTier: 'Hot'
    allowBlobPublicAccess: false
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    networkAcls: {
      bypass: 'AzureServices'
      defaultAction: 'Deny'
      virtualNetworkRules: [
        for subnet in subnets: {
          id: subnet
          action: 'Allow'
        }
      ]
      ipRules: [
        for address in addresses: {
          value: address
          action: 'Allow'
        }
      ]
    }
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2023-05-01' = {
  parent: account
  name: 'default'
  properties: {
    deleteRetentionPolicy: {
      enabled: true
      days: 14
    }
  }
}

resource containers 'Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01' = [
  for containerName in containerNames: {
    parent: blobs
    name: containerName
    properties: {
      publicAccess: 'None'
    }
  }
]

resource granted 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for grant in grants: {
    name: guid(account.id, principals[grant.process], grant.role)
    scope: account
    properties: {
      principalId: principals[grant.process]
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roles[grant.role])
    }
  }
]

module grantedOfContainers 'container-role.bicep' = [
  for grant in containerGrants: {
    name: 'role-${uniqueString(name, grant.process, grant.role, grant.container)}'
    params: {
      accountName: account.name
      containerName: grant.container
      principalId: principals[grant.process]
      roleId: roles[grant.role]
    }
    dependsOn: [
      containers
    ]
  }
]

@description('The name of the account.')
output name string = account.name

@description('Where its blobs are reached.')
output endpoint string = account.properties.primaryEndpoints.blob
