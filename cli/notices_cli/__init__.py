"""`notices`: the operators' tool. Was the requester told, and if not, why, and what is to be done?"""
