/** Proxies with a password in the environment of a server: its commands need them, and nobody reads the password. */
import { expect, test } from 'vitest'
import { startServer } from '../support/server.ts'

const PASSWORD = 'word/of a proxy'

test('a command has the proxies of the server, and what it shows of them has no password', async () => {
  const encoded = encodeURIComponent(PASSWORD)
  await using server = await startServer({
    env: {
      HTTPS_PROXY: `http://clerk:${encoded}@127.0.0.1:9`,
      http_proxy: 'clerk:another-word@127.0.0.1:9',
      ALL_PROXY: 'http://127.0.0.1:9',
      NO_PROXY: 'example.com',
    },
  })
  const { body } = await server.call('POST', '/conversations', {
    llm_config: { model: 'any', base_url: 'http://127.0.0.1:9' },
  })
  const stdoutOf = async (command: string): Promise<string> =>
    (await server.call('POST', `/conversations/${body.id}/commands`, { command })).body.stdout
  expect(await stdoutOf('echo "$HTTPS_PROXY $http_proxy $ALL_PROXY $NO_PROXY"')).toBe(
    'http://<secret:HTTPS_PROXY>@127.0.0.1:9 <secret:http_proxy>@127.0.0.1:9 http://127.0.0.1:9 example.com\n',
  )
  expect(await stdoutOf('printf %s "${http_proxy%@*}" | base64')).toBe('<secret:http_proxy>\n')
})
