/** An example of docs/sdk.md. */
import { run, sessions } from '../../../src/index.ts'

const { sessionId } = await run({ prompt: 'Say hello.' })
await run({ prompt: 'Once more.', options: { resume: sessionId } })
const copy = await run({ prompt: 'In another way.', options: { fork: sessionId } })

for await (const { id, status } of sessions().list()) console.log(status, id === copy.sessionId)
for await (const line of sessions().export(sessionId)) process.stdout.write(line)
await sessions().delete(sessionId)
