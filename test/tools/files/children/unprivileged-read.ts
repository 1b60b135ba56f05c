/** Prints what Read says about a file that nobody may open. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createEditorFiles } from '../../../../src/files/editor-files.ts'
import { UnfinishedFiles } from '../../../../src/files/jail/unfinished-files.ts'
import { AgentFiles } from '../../../../src/tools/files/agent-files.ts'
import { createRead } from '../../../../src/tools/files/read.ts'
import { PdfReader } from '../../../../src/tools/pdf/pdf-reader.ts'
import { contextIn } from '../../tool-fixture.ts'

const [directory] = process.argv.slice(2) as [string]
writeFileSync(join(directory, 'a'), 'x', { mode: 0 })
const files = new AgentFiles({
  files: createEditorFiles(() => ({ forbidden: [] }), new UnfinishedFiles(join(directory, 'unfinished'))),
  stateDirectory: directory,
  sealer: { seal: (content) => content, unseal: (sealed) => sealed },
  redact: async (text) => text,
})
const { error } = await createRead(files, new PdfReader()).run({ file_path: 'a' }, contextIn(directory))
console.log(JSON.stringify(error))
