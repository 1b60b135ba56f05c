import type { McpServer } from '@modelcontextprotocol/server'
import { ResourceTemplate } from '@modelcontextprotocol/server'
import { PIXEL } from '../programs/story/story-client.ts'

const TEXT = 'test://static-text'
const BINARY = 'test://static-binary'

export function addResources(server: McpServer): void {
  server.registerResource('static-text', TEXT, { description: 'A text', mimeType: 'text/plain' }, async () => ({
    contents: [{ uri: TEXT, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
  }))
  server.registerResource('static-binary', BINARY, { description: 'An image', mimeType: 'image/png' }, async () => ({
    contents: [{ uri: BINARY, mimeType: 'image/png', blob: PIXEL }],
  }))
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'Data of an id', mimeType: 'application/json' },
    async ({ href: uri }, { id }) => {
      const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` })
      return { contents: [{ uri, mimeType: 'application/json', text }] }
    },
  )
}
