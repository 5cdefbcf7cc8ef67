// The roles that are given, by their names: Azure knows them by their ids alone.

@export()
var roles = {
  AcrPull: '7f951dda-4ed3-4680-a7ca-43fe172d538d'
  'Azure Service Bus Data Owner': '090c5cfd-751d-490a-894a-3ce6f1109419'
  'Azure Service Bus Data Receiver': '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0'
  'Azure Service Bus Data Sender': '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39'
  'Key Vault Secrets User': '4633458b-17de-408a-b874-0445c86b69e6'
  'Storage Blob Data Contributor': 'ba92f5b4-2d11-453d-a403-e96b0029c9fe'
  'Storage Blob Data Owner': 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'
  'Storage Blob Data Reader': '2a2b9908-6ea1-4ae2-8e65-a410df84e7d1'
  'Storage Blob Delegator': 'db58b8e5-c6ad-4a2a-8342-4190687cbf4a'
}
