/** Names of tools: accepted by models, unique, and never those of another server. */
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { isServerName } from '../../../src/contract/mcp/mcp-server.ts'
import { toolNameOf } from '../../../src/state/mcp-tools.ts'

test('a plain name stays, and any other one is changed and gets a hash', () => {
  expect(toolNameOf('files', 'read_file')).toBe('mcp__files__read_file')
  expect(toolNameOf('files', 'read file')).toMatch(/^mcp__files__read_file_[0-9a-f]{8}$/)
  expect(toolNameOf('files', 'read/file')).not.toBe(toolNameOf('files', 'read file'))
})

const serverName = fc.stringMatching(/^[a-z-]{1,4}(_[a-z-]{1,3})?$/).filter(isServerName)

test('whatever a server calls its tools, models accept the names, and rules for another server do not hold for them', () => {
  fc.assert(
    fc.property(serverName, serverName, fc.string({ unit: 'grapheme' }), fc.string(), (server, other, one, two) => {
      const name = toolNameOf(server, one)
      expect(name).toMatch(/^mcp__[A-Za-z0-9_-]{1,59}$/)
      expect(name.startsWith(`mcp__${server}__`)).toBe(true)
      if (other !== server) expect(name.startsWith(`mcp__${other}__`)).toBe(false)
      if (one !== two) expect(toolNameOf(server, two)).not.toBe(name)
    }),
  )
})
