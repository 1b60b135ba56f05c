/** The model of a soak: a process of its own, so that it streams as fast as it can. Sends its address. */
import { startScriptedModel } from '../../../src/llm/scripted/scripted-model.ts'
import { randomTurns } from '../random-turns.ts'

const { baseUrl } = await startScriptedModel(randomTurns)
process.send!({ baseUrl })
process.on('disconnect', () => process.exit())
