/** Connections over which no key has come, over real sockets. */
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { keylessLimit } from '../../../src/http/guards/keyless-connections.ts'
import { KEY, setHttp } from '../fixtures.ts'
import { openSocket } from '../raw.ts'

const MAX = 5

const ask = async (socket: Socket, path: string, key?: string) => {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${key === undefined ? '' : `Authorization: Bearer ${key}\r\n`}\r\n`)
  const [bytes] = await once(socket, 'data')
  return String(bytes).slice(9, 12)
}

test('are closed above a limit, the oldest first, and those with a valid key stay', async () => {
  await using http = await setHttp({ http: { maxKeyless: MAX } })
  const url = await http.listen()
  const withKey = openSocket(url)
  expect(await ask(withKey, '/info', KEY)).toBe('200')
  const others: Socket[] = []
  for (let count = 0; count < 4 * MAX; count++) {
    const socket = openSocket(url).resume()
    others.push(socket)
    // Public, and the connection stays open for the next request.
    expect(await ask(socket, '/alive')).toBe('200')
  }
  await expect.poll(() => others.findIndex(({ readable }) => readable)).toBe(3 * MAX)
  expect(others.filter(({ readable }) => readable)).toHaveLength(MAX)
  expect(await ask(withKey, '/info', KEY)).toBe('200')
  expect(await ask(openSocket(url), '/info', KEY)).toBe('200')
})

test('take a part of the file descriptors only', () => {
  expect(keylessLimit(1024)).toBe(256)
  expect(keylessLimit(1_048_576)).toBe(4096)
  expect(keylessLimit(undefined)).toBe(4096)
})
