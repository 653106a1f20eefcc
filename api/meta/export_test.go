package meta

var CheckManager = checkManager
