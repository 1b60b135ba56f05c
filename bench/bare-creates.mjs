/**
 * What a start until a conversation was created is measured against: `bare-creates.mjs PORT HOME FILES` serves any request by
 * writing a conversation's files, with the contents of the files in FILES and the durability of the server. Plain JavaScript,
 * which Node loads without a parser of types.
 */
// @ts-check
import { mkdir, open, readdir, readFile } from 'node:fs/promises'
import http from 'node:http'
import { join } from 'node:path'

const [port = '', home = '', files = ''] = process.argv.slice(2)

const server = http.createServer((request, response) => {
  request.resume()
  createFiles().then(
    () => response.writeHead(201).end('{}'),
    (error) => response.writeHead(500).end(String(error)),
  )
})
server.listen(Number(port), '127.0.0.1')

/** All of it, the names too, is on the disk when this resolves. */
async function createFiles() {
  const id = crypto.randomUUID()
  const session = join(home, 'sessions', id)
  await Promise.all([mkdir(join(home, 'work', id), { recursive: true }), mkdir(session, { recursive: true })])
  for (const name of await readdir(files)) {
    await using file = await open(join(session, name), 'wx')
    await file.writeFile(await readFile(join(files, name)))
    await file.datasync()
  }
  for (const directory of [session, join(home, 'sessions')]) {
    await using handle = await open(directory, 'r')
    await handle.sync()
  }
}
