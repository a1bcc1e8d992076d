import { Gavel } from './gavel.mjs'

const gavel = new Gavel()
const token = await gavel.token()
if (token) console.log('write with', token)
