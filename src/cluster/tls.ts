/** The certificates with which instances encrypt their connections: read and checked once, at the start. */
import { X509Certificate, createPrivateKey } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'

/** Paths of files in PEM form. */
export type TlsFiles = { readonly cert: string; readonly key: string; readonly ca: string }

/** Both ends show a certificate, and accept those that the authority has signed. */
export type TlsMaterial = { readonly cert: string; readonly key: string; readonly ca: string }

/** Throws an error that says which setting to correct. */
export async function readTls({ cert, key, ca }: TlsFiles): Promise<TlsMaterial> {
  const [certText, keyText, caText] = await Promise.all([readPem('CERT', cert), readPem('KEY', key), readPem('CA', ca)])
  const certificate = parse('CERT', 'certificate', () => new X509Certificate(certText))
  const privateKey: KeyObject = parse('KEY', 'private key without a password', () => createPrivateKey(keyText))
  parse('CA', 'certificate', () => new X509Certificate(caText))
  if (!certificate.checkPrivateKey(privateKey))
    throw new Error(
      `${nameOf('KEY')} is not the key of the certificate in ${nameOf('CERT')}. Give the files of one pair.`,
    )
  const now = Date.now()
  if (now > Date.parse(certificate.validTo))
    throw new Error(`The certificate in ${nameOf('CERT')} expired on ${certificate.validTo}. Renew it.`)
  if (now < Date.parse(certificate.validFrom))
    throw new Error(
      `The certificate in ${nameOf('CERT')} is not valid before ${certificate.validFrom}. Check the clock.`,
    )
  return { cert: certText, key: keyText, ca: caText }
}

/** A value that only the two ends of this very connection know; empty without TLS. Call it when TLS is established. */
export const bindingOf = (socket: Socket): Buffer =>
  socket instanceof TLSSocket ? socket.exportKeyingMaterial(32, BINDING, Buffer.alloc(0)) : Buffer.alloc(0)

const BINDING = 'EXPERIMENTAL agent-server between instances'

/** Throws if the other end has shown no certificate that the authority has signed, or one that is not valid now. */
export function requireTrusted(socket: Socket): void {
  if (socket instanceof TLSSocket && !socket.authorized)
    throw new Error(
      `The certificate of another instance is not accepted: ${String(socket.authorizationError)}. Correct its OPENHANDS_CLUSTER_TLS_CERT, or OPENHANDS_CLUSTER_TLS_CA here.`,
    )
}

/** Another error for a handshake that failed after TLS was established: the other end closes what it does not trust. */
export function explainTlsError(error: unknown, tls: TlsMaterial | undefined): unknown {
  if (!tls) return error
  const { validTo } = new X509Certificate(tls.cert)
  const hasExpired = Date.parse(validTo) < Date.now()
  const why = hasExpired ? `this one has a certificate that expired on ${validTo}` : 'its log has the reason'
  const message = `The other instance closed the connection and may not accept the certificate of this one; ${why}`
  return Object.assign(new Error(message, { cause: error }), { code: 'ERR_TLS_REFUSED' })
}

/** Returns what was wrong with a certificate or the encryption, as a sentence; undefined for any other error. */
export function tlsFaultIn(error: unknown): string | undefined {
  for (let each = error; each instanceof Error; each = each.cause)
    if ('code' in each && TLS_CODE.test(String(each.code))) return `${each.message} (${String(each.code)}).`
  return undefined
}

const TLS_CODE = /CERT|^ERR_(?:SSL|TLS)_|^(?:UNABLE|DEPTH|EPROTO)/

type Setting = 'CERT' | 'KEY' | 'CA'

const nameOf = (setting: Setting) => `OPENHANDS_CLUSTER_TLS_${setting}`

async function readPem(setting: Setting, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new Error(
      `${nameOf(setting)}: ${path} cannot be read. Give the path of a PEM file that the server may read.`,
      {
        cause,
      },
    )
  }
}

function parse<T>(setting: Setting, what: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw new Error(`${nameOf(setting)}: the file contains no ${what} in PEM form. Give another file.`, { cause })
  }
}
